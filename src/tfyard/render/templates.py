"""Jinja templates of users: sandboxed, and strict about undefined names.

A template is a program: it may loop forever or fill the memory. `cli.template_process` limits it, because only
a separate process can be stopped reliably.
"""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tfyard.errors import Invalid
from tfyard.model import Position, Problem

MAX_OUTPUT = 16 << 20
"""The most that tfyard reads of a manifest."""
_NAME = "<template>"
_FIX = "set it with --set {name}=VALUE, or in the file of --values"


def fill(source: str, values: Mapping[str, Any], *, trim: bool) -> str:
    """The text, or `Invalid` with every problem found. `trim`: lines with only a block are removed."""
    environment = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=trim, lstrip_blocks=trim, keep_trailing_newline=True
    )
    environment.globals.pop("lipsum", None)
    environment.filters.pop("random", None)  # the same input must give the same output
    try:
        tree = environment.parse(source)
        code = environment.compile(tree, filename=_NAME)
        template = jinja2.Template.from_code(environment, code, environment.make_globals(None))
        return "".join(_limited(template.generate(dict(values))))
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
    """The line in the template: Jinja maps its own frames to it."""
    found = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _NAME:
            found = Position(traceback.tb_lineno, 1)
        traceback = traceback.tb_next
    return found


def _refuse_undefined(error: jinja2.UndefinedError, tree: nodes.Template, known: set[str]) -> NoReturn:
    """All names that are missing, not only the first."""
    missing = _missing(tree, known)
    problems = [
        Problem((), f"template: {name!r} is undefined", _FIX.format(name=name), position=Position(line, 1))
        for name, line in missing.items()
    ]
    if not any(f"{name!r}" in str(error) for name in missing):
        problems.insert(0, Problem((), f"template: {error}", position=_position(error.__traceback__)))
    raise Invalid(problems) from None


def _missing(tree: nodes.Template, known: set[str]) -> dict[str, int]:
    """Names that are used, set nowhere, and not tested with `is defined` or `default`."""
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
