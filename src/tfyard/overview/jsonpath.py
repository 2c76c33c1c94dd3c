r"""kubectl's JSONPath: `{.items[*].metadata.name}`, `{range .items[*]}{.metadata.name}{"\n"}{end}`.

Steps: `.name` (a dot in a name is `\.`), `.*`, `..name`, `['a','b']`, `[0]`, `[-1]`, `[1:3]`, `[*]` and filters
such as `[?(@.type=="Succeeded")]`. A missing value is empty, as with `kubectl get`.
"""

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from tfyard.errors import Usage

Step = Callable[[Any], Iterator[Any]]
_NAME = re.compile(r"(?:\\.|[^\s.,\[\]$@{}()\\])+")
_PARTS = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}|([^{}]+)""")
_COMPARISON = re.compile(
    r"""((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^"'=!<>])+)(?:(==|!=|<=|>=|<|>)(.+))?"""
)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


class Path(Struct, frozen=True):
    steps: tuple[Step, ...]
    is_from_root: bool = False

    def find(self, here: Any, root: Any) -> list[Any]:
        values = [root if self.is_from_root else here]
        for step in self.steps:
            values = [value for parent in values for value in step(parent)]
        return values


class RangeLoop(Struct, frozen=True):
    path: Path
    body: "tuple[Node, ...]"


Node = str | Path | RangeLoop


def parse(template: str) -> tuple[Node, ...]:
    """The parsed template; raises `Usage` with the position if it is not JSONPath."""
    parts: list[tuple[str, str]] = []
    end = 0
    for match in _PARTS.finditer(template):
        if match.start() != end:
            break
        parts.append((match[1], match[2]))
        end = match.end()
    if end != len(template):
        raise Usage(f"jsonpath {template!r}: a brace without its partner at {template[end:]!r}")
    nodes, unread = _nodes(parts)
    if unread:
        raise Usage(f"jsonpath {template!r}: {{end}} without {{range}}")
    return nodes


def parse_path(text: str) -> Path:
    """One expression with or without its braces, as for custom-columns and --sort-by: `.metadata.name`."""
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    return _path(inner if inner[:1] in (".", "[", "$", "@") else f".{inner}")


def render(nodes: tuple[Node, ...], data: Any, root: Any = None) -> str:
    root = data if root is None else root
    return "".join(_text(node, data, root) for node in nodes)


def text(value: Any) -> str:
    """The value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def order(values: list[Any]) -> tuple[int, float, str]:
    """The key by which objects are sorted by their first value: those without one first, numbers before texts."""
    value = values[0] if values else None
    if value is None:
        return 0, 0.0, ""
    is_number = isinstance(value, int | float)
    return (1, float(value), "") if is_number else (2, 0.0, text(value))


def _text(node: Node, here: Any, root: Any) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, RangeLoop):
        return "".join(render(node.body, each, root) for each in node.path.find(here, root))
    return " ".join(text(value) for value in node.find(here, root))


def _nodes(parts: list[tuple[str, str]], inside: bool = False) -> tuple[tuple[Node, ...], list[Any]]:
    """The nodes up to the {end} of the range that they are `inside`, and the parts after it."""
    nodes: list[Node] = []
    while parts:
        (code, literal), parts = parts[0], parts[1:]
        code = (code or "").strip()
        if literal:
            nodes.append(literal)
        elif code == "end":
            return tuple(nodes), parts if inside else [(code, ""), *parts]
        elif code.startswith("range"):
            body, parts = _nodes(parts, inside=True)
            nodes.append(RangeLoop(_path(code[5:].strip()), body))
        elif code[:1] in "\"'" and code:
            nodes.append(_unquoted(code))
        else:
            nodes.append(_path(code))
    if inside:
        raise Usage("jsonpath: {range} without {end}")
    return tuple(nodes), []


def _path(code: str) -> Path:
    unread, steps = code[1:] if code[:1] in ("$", "@") else code, list[Step]()
    if not code or (unread and unread[0] not in ".["):
        raise Usage(f"jsonpath: {code!r} is not a path; for example {{.metadata.name}}")
    while unread:
        step, unread = _bracket_step(unread) if unread[0] == "[" else _dot_step(unread)
        if step is not None:
            steps.append(step)
    return Path(tuple(steps), code[0] == "$")


def _dot_step(text: str) -> tuple[Step | None, str]:
    is_deep = text.startswith("..")
    unread = text[2 if is_deep else 1 :]
    if unread[:1] == "*":
        return (_everything if is_deep else _members), unread[1:]
    match = _NAME.match(unread)
    if match is None:
        if not is_deep and unread[:1] in ("", "["):
            return None, unread  # `.` alone is the value itself
        raise Usage(f"jsonpath: a name is missing at {text!r}")
    name = re.sub(r"\\(.)", r"\1", match[0])
    return (_deep(name) if is_deep else _key(name)), unread[match.end() :]


def _bracket_step(text: str) -> tuple[Step, str]:
    end = _closing(text)
    inner, unread = text[1:end].strip(), text[end + 1 :]
    if inner == "*":
        return _members, unread
    if inner.startswith("?(") and inner.endswith(")"):
        return _filter(inner[2:-1].strip()), unread
    if re.fullmatch(r"-?\d*:-?\d*(:-?\d+)?", inner):
        return _slice(inner), unread
    return _choice([_subscript(part.strip(), text) for part in _split(inner)]), unread


def _closing(text: str) -> int:
    """Position of the bracket that closes the first one; those in quotes do not count."""
    depth = 0
    for token in re.finditer(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[\[\]]""", text):
        depth += {"[": 1, "]": -1}.get(token[0], 0)
        if depth == 0 and token[0] == "]":
            return token.start()
    raise Usage(f"jsonpath: a bracket is not closed in {text!r}")


def _split(inner: str) -> list[str]:
    return re.findall(r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^,"'])+""", inner)


def _subscript(part: str, where: str) -> str | int:
    if re.fullmatch(r"-?\d+", part):
        return int(part)
    if part[:1] in "\"'" and part[-1:] == part[:1] and len(part) > 1:
        return _unquoted(part)
    raise Usage(f"jsonpath: {part!r} in {where!r} is neither a number nor a name in quotes")


def _unquoted(literal: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), literal[1:-1])


# --- steps


def _members(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _everything(value: Any) -> Iterator[Any]:
    for member in _members(value):
        yield member
        yield from _everything(member)


def _key(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and value.get(name) is not None:
            yield value[name]

    return step


def _deep(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        yield from _key(name)(value)
        for member in _members(value):
            yield from step(member)

    return step


def _choice(subscripts: list[str | int]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for subscript in subscripts:
            if isinstance(subscript, str):
                yield from _key(subscript)(value)
            elif isinstance(value, list) and -len(value) <= subscript < len(value):
                yield value[subscript]

    return step


def _slice(inner: str) -> Step:
    bounds = slice(*(int(part) if part else None for part in inner.split(":")))

    def step(value: Any) -> Iterator[Any]:
        yield from value[bounds] if isinstance(value, list) else ()

    return step


def _filter(condition: str) -> Step:
    match = _COMPARISON.fullmatch(condition)
    if match is None:
        raise Usage(f'jsonpath: {condition!r} is not a condition; for example @.type=="Succeeded"')
    left, sign, right = (part.strip() if part else "" for part in match.groups())

    def step(value: Any) -> Iterator[Any]:
        yield from (member for member in _members(value) if holds(member))

    def holds(member: Any) -> bool:
        first = _operand(left, member)
        if not sign:
            return bool(first)
        return any(_compares(sign, a, b) for a in first for b in _operand(right, member))

    _operand(left, None), _operand(right, None)  # errors are raised now, not at the first member
    return step


def _operand(code: str, member: Any) -> list[Any]:
    if code[:1] == "@":
        return _path(code).find(member, member)
    if code[:1] in ("'", '"'):
        return [_unquoted(code)]
    try:
        return [msgspec.json.decode(code)] if code else []
    except msgspec.DecodeError:
        raise Usage(f"jsonpath: {code!r} is neither a path, a number nor text in quotes") from None


def _compares(sign: str, first: Any, second: Any) -> bool:
    try:
        return _COMPARE[sign](first, second)
    except TypeError:  # a number and a text
        return False
