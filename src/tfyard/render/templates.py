"""Jinja templates of users, in a sandbox. Undefined names are errors, except in templates of the lenient kind.

A template is a program: it may loop forever or fill the memory. `cli.template_process` limits it, because only
a separate process can be stopped reliably.
"""

import inspect
from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn

import jinja2
from jinja2 import meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import Position, Problem
from tfyard.model.spelling import closest, did_you_mean

MAX_OUTPUT = 16 << 20
"""Largest manifest that tfyard reads, in characters."""
_NAME = "<template>"
_FIX = "set it with --set {name}=VALUE, or in the file of --values"


class Filled(Struct, frozen=True):
    text: str
    warnings: list[Problem] = []


class _Environment(ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """Old templates were written for Python 2, whose mappings have `iteritems`."""
        if isinstance(obj, dict) and attribute in ("iteritems", "iterkeys", "itervalues"):
            attribute = attribute.removeprefix("iter")
        return super().getattr(obj, attribute)


def fill(source: str, values: Mapping[str, Any], *, lenient: bool = False) -> Filled:
    """The filled text; raises `Invalid` with every problem. `lenient` is for templates beside a config, which were
    written for other rules: undefined names are empty, with a warning, and lines with only a block are removed."""
    warnings: list[Problem] = []
    undefined = _lenient(warnings) if lenient else jinja2.StrictUndefined
    environment = _environment(undefined, trim=lenient)
    try:
        tree = environment.parse(source)
        code = environment.compile(tree, filename=_NAME)
        template = jinja2.Template.from_code(environment, code, environment.make_globals(None))
        text = "".join(_limited(template.generate(dict(values))))
        return Filled(text, [_located(warning, template) for warning in warnings])
    except jinja2.UndefinedError as error:
        _refuse_undefined(error, environment.parse(source), set(values) | set(environment.globals))
    except jinja2.TemplateSyntaxError as error:
        message = str(error.message)
        raise Invalid([Problem((), f"template: {message}", position=Position(error.lineno, 1))]) from None
    except (
        jinja2.TemplateError,
        SecurityError,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        position = _position(error.__traceback__)
        raise Invalid([Problem((), f"template: {_message(error)}", position=position)]) from None
    except RecursionError:
        raise Invalid([Problem((), "template: a macro calls itself endlessly")]) from None


def _environment(undefined: type[jinja2.Undefined], *, trim: bool) -> _Environment:
    environment = _Environment(
        undefined=undefined, trim_blocks=trim, lstrip_blocks=trim, keep_trailing_newline=True
    )
    environment.globals.pop("lipsum", None)
    environment.filters.pop("random", None)  # the same input must give the same output
    return environment


def unused(source: str, names: Collection[str]) -> dict[str, str]:
    """Names that the template does not use -> a suggestion."""
    used = _used(source) if names else set()
    return {name: did_you_mean(name, sorted(used)) for name in names if name not in used}


def misspelled(source: str, names: Collection[str]) -> list[Problem]:
    """Warnings for unused names that resemble a used one. Other unused names are fine: templates share values."""
    used = _used(source) if names else set()
    guesses = {name: closest(name, used - set(names), 0.8) for name in names if name not in used}
    return [
        Problem(
            (), f"--values: the template does not use {name!r}", f"did you mean {best}?", severity="warning"
        )
        for name, best in guesses.items()
        if best
    ]


def _used(source: str) -> set[str]:
    """Names that the template reads; empty if it is invalid, which is reported when it is filled."""
    try:
        return meta.find_undeclared_variables(_environment(jinja2.Undefined, trim=False).parse(source))
    except (jinja2.TemplateError, RecursionError):
        return set()


def _lenient(warnings: list[Problem]) -> type[jinja2.Undefined]:
    """Undefined names: empty, with a warning, where they are output or looped over, but not in `x or 8080`."""

    def warn(message: str) -> None:
        problem = Problem((), f"template: {message}", "it is empty in the output", severity="warning")
        problem = replace(problem, position=_caller())
        if problem not in warnings:
            warnings.append(problem)

    class Empty(jinja2.Undefined):
        def __str__(self) -> str:
            warn(self._undefined_message)
            return ""

        def __iter__(self) -> Iterator[Any]:
            warn(self._undefined_message)
            return iter(())

    return Empty


def _caller() -> Position | None:
    """Line of the compiled template that is running."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != _NAME:
        frame = frame.f_back
    return Position(frame.f_lineno, 1) if frame else None


def _located(problem: Problem, template: jinja2.Template) -> Problem:
    if problem.position is None:
        return problem
    return replace(problem, position=Position(template.get_corresponding_lineno(problem.position.line), 1))


def _limited(parts: Iterator[str]) -> Iterator[str]:
    size = 0
    for part in parts:
        size += len(part)
        if size > MAX_OUTPUT:
            text = f"template: writes more than {MAX_OUTPUT:,} characters"
            raise Invalid([Problem((), text, "does a loop go too far?")])
        yield part


def _message(error: Exception) -> str:
    return f"{error}" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: {error}"


def _position(traceback: TracebackType | None) -> Position | None:
    """Line of the template, to which Jinja maps its frames."""
    position = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _NAME:
            position = Position(traceback.tb_lineno, 1)
        traceback = traceback.tb_next
    return position


def _refuse_undefined(error: jinja2.UndefinedError, tree: nodes.Template, known: set[str]) -> NoReturn:
    """Raises `Invalid` with all missing names, not only the first."""
    missing = _missing(tree, known)
    problems = [
        Problem((), f"template: {name!r} is undefined", _FIX.format(name=name), position=Position(line, 1))
        for name, line in missing.items()
    ]
    if not any(f"{name!r}" in str(error) for name in missing):
        problems.insert(0, Problem((), f"template: {error}", position=_position(error.__traceback__)))
    raise Invalid(problems) from None


def _missing(tree: nodes.Template, known: set[str]) -> dict[str, int]:
    """Names that are used but not set, and not guarded by `is defined` or `default`, with their lines."""
    set_here = {n.name for n in tree.find_all(nodes.Name) if n.ctx in ("store", "param")}
    set_here |= {n.name for n in tree.find_all(nodes.Macro)} | {"loop", "caller", "varargs", "kwargs"}
    guards: list[nodes.Filter | nodes.Test] = [*tree.find_all(nodes.Filter), *tree.find_all(nodes.Test)]
    guarded = {id(guard.node) for guard in guards if _guards(guard)}
    missing: dict[str, int] = {}
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and name.name not in known | set_here and id(name) not in guarded:
            missing.setdefault(name.name, name.lineno)
    return missing


def _guards(guard: nodes.Filter | nodes.Test) -> bool:
    return guard.name in ("default", "d", "defined", "undefined")
