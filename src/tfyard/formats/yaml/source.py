"""Text -> documents that know the position of every value.

    for document in source.read(text, "job.yaml"): …

The content of a file is not trusted: its size, depth, number of values and expanded aliases are limited, and
`read` raises only `errors.Invalid`, with as many problems as possible and helpful messages.
JSON is YAML, so the output of `kubectl get -o json` can be read directly.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import msgspec

from tfyard import errors
from tfyard.formats.yaml.compose import Composer, YamlNode
from tfyard.model.problem import FieldPath, Position, Problem

if TYPE_CHECKING:
    import yaml  # 10 ms, which JSON does not need

MAX_INPUT = 16 << 20

_AS_UTF8 = "save the file as UTF-8"
# JSON writes characters beyond 16 bits as two escapes, which YAML rejects. After a backslash, an escape is text.
_PAIR = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")

_QUOTE = "quote the value"
_QUOTE_OR_REMOVE = "quote the value or remove the line"
_TEMPLATE_FIX = 'quote the template: "{{ name }}", or render the file first'

# Any character that YAML does not allow: the parser reports a byte offset, but users need a line. Slow to compile.
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_STARS = re.compile(r"\*{2,}(?=\s|$)")
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class _TextLines:
    """The lines of the text, shared by all documents. Only problems need them, so they are split on first use."""

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

    def __init__(self, root: YamlNode, name: str, index: int, lines: _TextLines) -> None:
        self.data = root.value
        self.name = name
        self.index = index
        self._root = root
        self._lines = lines

    def position(self, path: FieldPath, *, key: bool = False) -> Position:
        """Position of the value at `path`, or of its key; if it is absent, of its nearest parent."""
        node, _ = self._walk(path)
        return node.key_position() if key else node.position()

    def text(self, path: FieldPath) -> str | None:
        """A scalar as it is written, without its quotes: `on` and `1:30` before they became values."""
        node, is_present = self._walk(path)
        return node.text if is_present else None

    def source_line(self, line: int) -> str:
        return self._lines.get(line)

    def part(self, path: FieldPath) -> "Document":
        """The value at `path` as a separate document, which keeps its positions in the text."""
        node, _ = self._walk(path)
        return Document(node, self.name, self.index, self._lines)

    def _walk(self, path: FieldPath) -> tuple[YamlNode, bool]:
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
    lines = _TextLines(source)
    return tuple(Document(root, name, index, lines) for index, root in enumerate(_compose(source)))


def _compose(source: str) -> list[YamlNode]:
    """The root of each document. The parser stops at the first error. Secrets masked with stars often occur many
    times, so each is replaced and the text parsed again, as long as that is cheap: all of them are reported."""
    import yaml  # 12 ms; a run of a script reads no YAML

    problems: list[Problem] = []
    masked = source
    while True:
        composer, is_done = Composer(), True
        try:
            roots = list(composer.documents_of(yaml.parse(_without_pairs(masked), Loader=_loader())))
        except yaml.YAMLError as error:
            problems.append(_explain(error, source, composer.path()))
            masked = _without_stars(error, masked)
            is_done = not masked or len(masked) * len(problems) > MAX_INPUT
        if is_done and (problems or composer.problems):
            raise errors.Invalid(sorted([*composer.problems, *problems], key=_reading_order))
        if is_done:
            return roots


def _loader() -> Any:
    """The parser in C or, where PyYAML has none, the one in Python: the same language, ten times slower."""
    import yaml  # as above

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def locate(problems: tuple[Problem, ...] | list[Problem], document: Document) -> tuple[Problem, ...]:
    """The problems with their positions, in reading order. A problem of a value points at the value, a problem of
    a field at its key."""
    located = [problem if problem.position else _located(problem, document) for problem in problems]
    return tuple(sorted(located, key=_reading_order))


def split_lines(text: str | bytes) -> list[str]:
    """Lines as the YAML parser counts them, even of text that `read` rejects."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    return _LINE_BREAK.split(text.removeprefix("\ufeff"))


def _reading_order(problem: Problem) -> tuple[int, int]:
    return (problem.position.line, problem.position.column) if problem.position else (0, 0)


def _located(problem: Problem, document: Document) -> Problem:
    is_about_field = problem.value is msgspec.UNSET
    return msgspec.structs.replace(problem, position=document.position(problem.path, key=is_about_field))


def _child(node: YamlNode, step: str | int) -> YamlNode | None:
    children = node.children
    if isinstance(children, dict):
        return children.get(step)
    if isinstance(children, list) and isinstance(step, int) and 0 <= step < len(children):
        item: YamlNode = children[step]
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
        position = _position_of(text, error.start)
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
        _refuse(message, _AS_UTF8, _position_of(before, len(before)))


def _refuse(message: str, fix: str, position: Position | None = None) -> NoReturn:
    raise errors.Invalid([Problem((), message, fix, position=position)])


# --- errors of the YAML parser
#
# The parser's messages are about its grammar, not about common mistakes: tabs, secrets masked with stars,
# templates that were not rendered. A needle is a part that the messages of both PyYAML parsers share.


class _KnownMistake(NamedTuple):
    needle: str
    message: str
    fix: str
    at_context: bool = False


_KNOWN = (
    _KnownMistake("tab character", "a tab is used for indentation, which YAML forbids", "use spaces"),
    _KnownMistake("an alias", "a value that starts with * is a YAML alias", _QUOTE_OR_REMOVE, True),
    _KnownMistake("an anchor", "a value that starts with & is a YAML anchor", _QUOTE_OR_REMOVE, True),
    _KnownMistake(
        "mapping values are not allowed",
        'unexpected ":"',
        "quote the value that contains it, or correct the indentation",
    ),
    _KnownMistake(
        "quoted scalar found unexpected", "the quote opened here is never closed", "close it", True
    ),
    _KnownMistake("Unicode character escape", "invalid Unicode escape", "write the character itself"),
    _KnownMistake(
        "quoted scalar",
        "invalid escape sequence in double quotes",
        "double the backslash, or use single quotes",
    ),
    _KnownMistake(
        "expected key",
        "this line does not belong to the mapping above it",
        "align it with the keys of that mapping",
    ),
    _KnownMistake(
        "<block end>",
        "this line does not belong to the lines above it",
        "align it with those lines",
    ),
    _KnownMistake(
        "'-' indicator",
        "this line does not belong to the list above it",
        "start it with - or correct its indentation",
    ),
    _KnownMistake(
        "flow sequence",
        "the list opened with [ here is malformed",
        "close it with ], separate items with commas",
        True,
    ),
    _KnownMistake(
        "flow mapping",
        "the mapping opened with { here is malformed",
        "close it with }, separate pairs with commas",
        True,
    ),
    _KnownMistake(
        "sequence entries are not allowed", "a list cannot start here", "put the - on the next line, indented"
    ),
    _KnownMistake(
        "expected ':'",
        "this line is neither `key: value` nor a list item",
        "write `key: value`, or quote the text",
        True,
    ),
    _KnownMistake("a flow node", "a value is missing inside [ ] or { }", "write it, or close the bracket"),
    _KnownMistake("node content", "a value is missing here, or starts with a bracket", _QUOTE),
    _KnownMistake("undefined tag handle", "a value that starts with ! is a YAML tag", _QUOTE, True),
)


def _explain(error: "yaml.YAMLError", text: str, path: FieldPath) -> Problem:
    import yaml  # as above

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return _marked(error, text, path)
    match = re.search(_FORBIDDEN, text)
    if match is None:
        return Problem(path, str(error))
    message = f"the character U+{ord(match[0]):04X} is not allowed in YAML"
    fix = (
        "save the file as UTF-8 text"
        if match[0] == "\0"
        else 'remove it, or write it as an escape in "double quotes"'
    )
    return Problem(path, message, fix, position=_position_of(text, match.start()))


def _without_stars(error: "yaml.YAMLError", text: str) -> str:
    """The text with letters in place of the stars (`****`) of this error; empty if the error is another one."""
    mark: Any = getattr(error, "context_mark", None)
    stars = _STARS.match(text, mark.index) if mark is not None else None
    return f"{text[: stars.start()]}{'x' * len(stars[0])}{text[stars.end() :]}" if stars else ""


def _position_of(text: str, offset: int) -> Position:
    breaks = list(_LINE_BREAK.finditer(text, 0, offset))
    start = breaks[-1].end() if breaks else 0
    return Position(len(breaks) + 1, offset - start + 1)


def _marked(error: "yaml.MarkedYAMLError", text: str, path: FieldPath) -> Problem:
    mark: Any = error.problem_mark
    character = text[mark.index : mark.index + 1]
    words = f"{error.context or ''} {error.problem or ''}"
    if "cannot start any token" in words:
        known = _at_character(character)
    else:
        known = next(
            (known for known in _KNOWN if known.needle in words), _KnownMistake("", words.strip(), "")
        )
    if known.at_context and error.context_mark is not None:
        mark = error.context_mark
    fix = _TEMPLATE_FIX if "{{" in _line_at(text, mark.index) else known.fix
    return Problem(path, known.message, fix, position=Position(mark.line + 1, mark.column + 1))


def _at_character(character: str) -> _KnownMistake:
    return (
        _KNOWN[0]
        if character == "\t"
        else _KnownMistake("", f"a value cannot start with {character}", _QUOTE)
    )


def _line_at(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return text[start : end if end >= 0 else len(text)]
