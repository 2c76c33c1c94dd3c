"""docs/python-reference.md: what `import tfyard` offers, from signatures and docstrings.

python -m tools.python_reference      writes it
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tfyard

PAGE = Path(__file__).parents[1] / "docs" / "python-reference.md"
HEAD = """# Python reference

Every name of `import tfyard`, from its docstring; [From Python](python.md) shows them at work. The same with
coroutines is `tfyard.aio`: what waits or asks is a coroutine there, and `logs` an asynchronous iterator.
"""


def page() -> str:
    names = [name for name in tfyard.__all__ if name not in ("__version__", "aio")]
    objects = {name: getattr(tfyard, name) for name in names}
    groups = {
        "Functions": [name for name in names if inspect.isfunction(objects[name])],
        "Classes": [name for name in names if _is_class(objects[name], error=False)],
        "Errors": [name for name in names if _is_class(objects[name], error=True)],
    }
    parts = [HEAD]
    for title, members in groups.items():
        parts.append(f"## {title}\n")
        parts += ["\n".join(_entry(name, objects[name])) for name in members]
    return "\n".join(parts)


def _is_class(found: object, *, error: bool) -> bool:
    return inspect.isclass(found) and issubclass(found, Exception) is error


def _entry(name: str, found: Any) -> Iterator[str]:
    yield f"### tfyard.{name}\n"
    if inspect.isfunction(found) or not issubclass(found, Exception):
        yield _signature(f"tfyard.{name}", found)
    yield from _text(found)
    if inspect.isclass(found):
        for member, each in _public(found):
            yield f"#### {name}.{member}\n"
            if not isinstance(each, property):
                yield _signature(f"{name}.{member}", each)
            yield from _text(each)


def _public(found: type) -> Iterator[tuple[str, Any]]:
    """Methods and properties with a docstring that the class itself declares, in their order."""
    for name, each in vars(found).items():
        is_member = isinstance(each, property | staticmethod | classmethod) or inspect.isfunction(each)
        if is_member and not name.startswith("_") and inspect.getdoc(each):
            yield name, each


def _signature(name: str, found: Any) -> str:
    """One parameter in each line: some have twenty."""
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    signature = inspect.signature(found)
    names = [each for each in signature.parameters.values() if each.name not in ("self", "cls")]
    shown = [_parameter(each) for each in names]
    keyword = next((at for at, each in enumerate(names) if each.kind is each.KEYWORD_ONLY), None)
    if keyword is not None and not any(each.kind is each.VAR_POSITIONAL for each in names):
        shown.insert(keyword, "*")
    end = signature.return_annotation
    returned = "" if end is signature.empty or inspect.isclass(found) else f" -> {_plain(end)}"
    line = f"{name}({', '.join(shown)}){returned}"
    if len(line) > 100:
        line = f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){returned}"
    return f"```text\n{_without_modules(line)}\n```\n"


def _parameter(given: inspect.Parameter) -> str:
    stars = {given.VAR_POSITIONAL: "*", given.VAR_KEYWORD: "**"}.get(given.kind, "")
    text = stars + given.name
    if given.annotation is not given.empty and stars != "**":  # `**words` are the words of a job file
        text += f": {_plain(given.annotation)}"
    return text if given.default is given.empty else f"{text} = {given.default!r}"


def _plain(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _without_modules(text: str) -> str:
    """`tfyard.model.job.Job` is `Job` for a reader."""
    return re.sub(r"\b(?:tfyard|collections|typing|datetime|pathlib)\.(?:\w+\.)*(?=[A-Z])", "", text)


def _text(found: Any) -> Iterator[str]:
    if text := inspect.getdoc(found):
        yield f"{text}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
