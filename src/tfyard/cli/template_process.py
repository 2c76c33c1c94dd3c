"""Renders a template in a separate process, which is stopped when it takes too much time or memory.

Run as a module, this is that process: a request on standard input, an answer on standard output.
"""

import os
import subprocess
import sys
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Invalid, Usage
from tfyard.model import Position, Problem

SECONDS = "TFYARD_TEMPLATE_SECONDS"
"""The environment variable that allows a slow template more time."""
MEMORY = 512 << 20
_TOO_MUCH = "template: needs more than {} MB of memory"
_TOO_LONG = "template: not finished after {} s"
_FIX = "does a loop go too far?"


class TemplateRequest(Struct, kw_only=True):
    source: str
    values: dict[str, Any]
    sets: list[str] = []
    """Names of `--set`, each of which the template must use."""
    shared: list[str] = []
    """Names of `--values`, which several templates may share."""
    lenient: bool = False
    """See `templates.fill`."""


class TemplateProblem(Struct):
    """A problem, as it is sent between the processes."""

    message: str
    fix: str = ""
    line: int | None = None


class TemplateAnswer(Struct):
    text: str = ""
    problems: list[TemplateProblem] = []
    warnings: list[TemplateProblem] = []
    unused: dict[str, str] = {}
    """Names of `--set` that the template does not use, and what was probably meant."""


def fill(request: TemplateRequest) -> tuple[str, list[Problem]]:
    """Fill the template in a child process: its text, and warnings about it."""
    seconds = _seconds()
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=msgspec.json.encode(request),
            capture_output=True,
            timeout=seconds * 2,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Invalid([Problem((), _TOO_LONG.format(seconds * 2), _FIX)]) from None
    if done.returncode:
        text = _TOO_LONG.format(seconds) if done.returncode < 0 else _TOO_MUCH.format(MEMORY >> 20)
        raise Invalid([Problem((), text, _FIX)])
    answer = msgspec.json.decode(done.stdout, type=TemplateAnswer)
    if answer.unused:
        texts = [f"--set {name}: the template does not use it; {fix}" for name, fix in answer.unused.items()]
        raise Usage("; ".join(texts))
    if answer.problems:
        raise Invalid(list(map(_problem, answer.problems)))
    return answer.text, [replace(_problem(warning), severity="warning") for warning in answer.warnings]


def _seconds() -> int:
    text = os.environ.get(SECONDS, "10")
    if not text.isdecimal() or not 0 < int(text) < 10_000:
        raise Usage(f"{SECONDS}={text}: must be a number of seconds")
    return int(text)


def _problem(refusal: TemplateProblem) -> Problem:
    return Problem(
        (), refusal.message, refusal.fix, position=Position(refusal.line, 1) if refusal.line else None
    )


def _limit() -> None:
    """Limit CPU time and memory of this process. On Windows, only the timeout of the caller applies."""
    try:
        import resource  # Windows has none
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (_seconds(), _seconds()))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: TemplateRequest) -> TemplateAnswer:
    from tfyard.render import templates  # 60 ms with Jinja, which only the separate process needs

    if unused := templates.unused(request.source, request.sets):
        return TemplateAnswer(unused=unused)
    try:
        filled = templates.fill(request.source, request.values, lenient=request.lenient)
    except Invalid as error:
        return TemplateAnswer(problems=list(map(_refusal, error.problems)))
    warnings = [*templates.misspelled(request.source, request.shared), *filled.warnings]
    return TemplateAnswer(filled.text, warnings=list(map(_refusal, warnings)))


def _refusal(problem: Problem) -> TemplateProblem:
    return TemplateProblem(problem.message, problem.fix, problem.position.line if problem.position else None)


def _serve() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=TemplateRequest)
    _limit()
    try:
        answer = msgspec.json.encode(_answer(request))
    except MemoryError:
        sys.exit(3)
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    _serve()
