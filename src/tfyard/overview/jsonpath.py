r"""kubectl's JSONPath: `{.items[*].metadata.name}`, `{range .items[*]}{.metadata.name}{"\n"}{end}`.

Steps: `.name` (a dot in a name is `\.`), `.*`, `..name`, `['a','b']`, `[0]`, `[-1]`, `[1:3]`, `[*]` and filters
such as `[?(@.type=="Succeeded")]`. What is not there is empty, as with `kubectl get`.
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
        found = [root if self.is_from_root else here]
        for step in self.steps:
            found = [value for each in found for value in step(each)]
        return found


class Range(Struct, frozen=True):
    path: Path
    body: "tuple[Node, ...]"


Node = str | Path | Range


def parse(template: str) -> tuple[Node, ...]:
    """`Usage` with the position if it is not JSONPath."""
    parts: list[tuple[str, str]] = []
    end = 0
    for found in _PARTS.finditer(template):
        if found.start() != end:
            break
        parts.append((found[1], found[2]))
        end = found.end()
    if end != len(template):
        raise Usage(f"jsonpath {template!r}: a brace without its partner at {template[end:]!r}")
    nodes, rest = _nodes(parts)
    if rest:
        raise Usage(f"jsonpath {template!r}: {{end}} without {{range}}")
    return nodes


def parse_path(text: str) -> Path:
    """One expression, with or without its braces: `.metadata.name`, as of custom-columns and --sort-by."""
    inner = text.strip().removeprefix("{").removesuffix("}").strip()
    return _path(inner if inner[:1] in (".", "[", "$", "@") else f".{inner}")


def render(nodes: tuple[Node, ...], data: Any, root: Any = None) -> str:
    root = data if root is None else root
    return "".join(_text(node, data, root) for node in nodes)


def text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _text(node: Node, here: Any, root: Any) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, Range):
        return "".join(render(node.body, each, root) for each in node.path.find(here, root))
    return " ".join(text(value) for value in node.find(here, root))


def _nodes(parts: list[tuple[str, str]], inside: bool = False) -> tuple[tuple[Node, ...], list[Any]]:
    """Up to the {end} of the range that they are `inside`, and what follows it."""
    found: list[Node] = []
    while parts:
        (code, literal), parts = parts[0], parts[1:]
        code = (code or "").strip()
        if literal:
            found.append(literal)
        elif code == "end":
            return tuple(found), parts if inside else [(code, ""), *parts]
        elif code.startswith("range"):
            body, parts = _nodes(parts, inside=True)
            found.append(Range(_path(code[5:].strip()), body))
        elif code[:1] in "\"'" and code:
            found.append(_unquoted(code))
        else:
            found.append(_path(code))
    if inside:
        raise Usage("jsonpath: {range} without {end}")
    return tuple(found), []


def _path(code: str) -> Path:
    rest, steps = code[1:] if code[:1] in ("$", "@") else code, list[Step]()
    if not code or (rest and rest[0] not in ".["):
        raise Usage(f"jsonpath: {code!r} is not a path; for example {{.metadata.name}}")
    while rest:
        step, rest = _bracket_step(rest) if rest[0] == "[" else _dot_step(rest)
        if step is not None:
            steps.append(step)
    return Path(tuple(steps), code[0] == "$")


def _dot_step(text: str) -> tuple[Step | None, str]:
    is_deep = text.startswith("..")
    rest = text[2 if is_deep else 1 :]
    if rest[:1] == "*":
        return (_everything if is_deep else _members), rest[1:]
    found = _NAME.match(rest)
    if found is None:
        if not is_deep and rest[:1] in ("", "["):
            return None, rest  # `.` alone is the value itself
        raise Usage(f"jsonpath: a name is missing at {text!r}")
    name = re.sub(r"\\(.)", r"\1", found[0])
    return (_deep(name) if is_deep else _key(name)), rest[found.end() :]


def _bracket_step(text: str) -> tuple[Step, str]:
    end = _closing(text)
    inner, rest = text[1:end].strip(), text[end + 1 :]
    if inner == "*":
        return _members, rest
    if inner.startswith("?(") and inner.endswith(")"):
        return _filter(inner[2:-1].strip()), rest
    if re.fullmatch(r"-?\d*:-?\d*(:-?\d+)?", inner):
        return _slice(inner), rest
    return _choice([_subscript(part.strip(), text) for part in _split(inner)]), rest


def _closing(text: str) -> int:
    """The bracket that closes the first one; those in quotes do not count."""
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
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), literal[1:-1])


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


def _choice(wanted: list[str | int]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for each in wanted:
            if isinstance(each, str):
                yield from _key(each)(value)
            elif isinstance(value, list) and -len(value) <= each < len(value):
                yield value[each]

    return step


def _slice(inner: str) -> Step:
    bounds = slice(*(int(part) if part else None for part in inner.split(":")))

    def step(value: Any) -> Iterator[Any]:
        yield from value[bounds] if isinstance(value, list) else ()

    return step


def _filter(condition: str) -> Step:
    found = _COMPARISON.fullmatch(condition)
    if found is None:
        raise Usage(f'jsonpath: {condition!r} is not a condition; for example @.type=="Succeeded"')
    left, sign, right = (part.strip() if part else "" for part in found.groups())

    def step(value: Any) -> Iterator[Any]:
        yield from (member for member in _members(value) if holds(member))

    def holds(member: Any) -> bool:
        first = _operand(left, member)
        if not sign:
            return bool(first)
        return any(_compares(sign, a, b) for a in first for b in _operand(right, member))

    _operand(left, None), _operand(right, None)  # what is wrong is said at once, not at the first member
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
