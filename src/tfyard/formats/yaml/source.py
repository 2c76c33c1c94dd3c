"""Text -> documents that know the position of every value.

    for document in source.read(text, "job.yaml"): …

The content of a file is not trusted: its size, depth, number of values and expanded aliases are limited, and
`read` raises only `errors.Invalid`, with every problem that could be found.
JSON is YAML, so the output of `kubectl get -o json` can be read as it is.
"""

import re
from typing import Any, NoReturn

import msgspec

from tfyard import errors
from tfyard.formats.yaml import syntax_errors
from tfyard.formats.yaml.compose import Composer, Node
from tfyard.model.problem import FieldPath, Position, Problem

MAX_INPUT = 16 << 20

_AS_UTF8 = "save the file as UTF-8"
# JSON writes characters beyond 16 bits as two escapes, which YAML rejects; after a backslash they are text.
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class _Lines:
    """The lines of the text, shared by all documents. They are needed only for problems, so split on first use."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[str] | None = None

    def get(self, line: int) -> str:
        if self._lines is None:
            self._lines = split_lines(self._text)
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""


class Document:
    """One YAML document: plain data and a map back to the text.

    Two aliases of one value share it in memory, so data must not be changed.
    """

    __slots__ = ("_lines", "_root", "data", "index", "name")

    def __init__(self, root: Node, name: str, index: int, lines: _Lines) -> None:
        self.data = root.value
        self.name = name
        self.index = index
        self._root = root
        self._lines = lines

    def position(self, path: FieldPath, *, key: bool = False) -> Position:
        """The position of the value at `path`, or of its key; if it is absent, that of its nearest parent."""
        node, _ = self._walk(path)
        return node.key_position() if key else node.position()

    def text(self, path: FieldPath) -> str | None:
        """A scalar as it was written, without its quotes: `on` and `1:30` before they became values."""
        node, found = self._walk(path)
        return node.text if found else None

    def source_line(self, line: int) -> str:
        return self._lines.get(line)

    def part(self, path: FieldPath) -> "Document":
        """The value at `path` as a document of its own, with its positions in the text."""
        node, _ = self._walk(path)
        return Document(node, self.name, self.index, self._lines)

    def _walk(self, path: FieldPath) -> tuple[Node, bool]:
        node = self._root
        for step in path:
            child = _child(node, step)
            if child is None:
                return node, False
            node = child
        return node, True


def read(text: str | bytes, name: str = "<stdin>") -> tuple[Document, ...]:
    """All documents of a text except empty ones. Raises `errors.Invalid` and nothing else."""
    source = _decode(text)
    lines = _Lines(source)
    return tuple(Document(root, name, index, lines) for index, root in enumerate(_compose(source)))


def _compose(source: str) -> list[Node]:
    """The parser stops at the first error. Values masked with stars often come in numbers, so it is tried again
    without each of them, as long as that costs little."""
    import yaml  # slow to import; a job that comes from no file needs none

    found: list[Problem] = []
    rest = source
    while True:
        composer, is_done = Composer(), True
        try:
            roots = list(composer.documents_of(yaml.parse(_without_pairs(rest), Loader=_loader())))
        except yaml.YAMLError as error:
            found.append(syntax_errors.explain(error, source, composer.path()))
            rest = syntax_errors.without_stars(error, rest)
            is_done = not rest or len(rest) * len(found) > MAX_INPUT
        if is_done and (found or composer.problems):
            raise errors.Invalid(sorted([*composer.problems, *found], key=_reading_order))
        if is_done:
            return roots


def _loader() -> Any:
    """Some platforms have only the Python parser: the same language, ten times slower."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def locate(problems: tuple[Problem, ...] | list[Problem], document: Document) -> tuple[Problem, ...]:
    """Give each problem its position, and sort them in reading order. One about a value
    points at the value, one about a field at its key."""
    located = [problem if problem.position else _located(problem, document) for problem in problems]
    return tuple(sorted(located, key=_reading_order))


def split_lines(text: str | bytes) -> list[str]:
    """Lines as the YAML parser counts them, also of text that `read` rejected."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return syntax_errors.LINE_BREAK.split(text.removeprefix("\ufeff"))


def _reading_order(problem: Problem) -> tuple[int, int]:
    return (problem.position.line, problem.position.column) if problem.position else (0, 0)


def _located(problem: Problem, document: Document) -> Problem:
    is_about_field = problem.value is msgspec.UNSET
    return msgspec.structs.replace(problem, position=document.position(problem.path, key=is_about_field))


def _child(node: Node, step: str | int) -> Node | None:
    children = node.children
    if isinstance(children, dict):
        return children.get(step)
    if isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children):
        item: Node = children[step]
        return item
    return None


def _decode(text: str | bytes) -> str:
    if len(text) > MAX_INPUT:
        _refuse(f"the input has {len(text):,} bytes; at most {MAX_INPUT:,} are allowed", "split the file")
    if isinstance(text, bytes):
        text = _from_utf8(text)
    text = text.removeprefix("\ufeff")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        position = syntax_errors.position_of(text, error.start)
        _refuse(f"unpaired surrogate U+{ord(text[error.start]):04X}", _AS_UTF8, position)
    if size > MAX_INPUT:
        _refuse(f"the input has {size:,} bytes; at most {MAX_INPUT:,} are allowed", "split the file")
    return text


def _without_pairs(text: str) -> str:
    return _PAIR.sub(_joined, text) if text.lstrip()[:1] in ("{", "[") and "\\ud" in text.lower() else text


def _joined(pair: re.Match[str]) -> str:
    high, low = int(pair[2], 16) - 0xD800, int(pair[3], 16) - 0xDC00
    return f"{pair[1]}\\U{0x10000 + (high << 10) + low:08X}"


def _from_utf8(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse("the text is UTF-16: it starts with that byte order mark", _AS_UTF8)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        message = f"the byte 0x{data[error.start]:02x} at offset {error.start} is not UTF-8"
        _refuse(message, _AS_UTF8, syntax_errors.position_of(before, len(before)))


def _refuse(message: str, fix: str, position: Position | None = None) -> NoReturn:
    raise errors.Invalid([Problem((), message, fix, position=position)])
