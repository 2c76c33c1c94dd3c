"""Errors of the YAML parser in words that help.

The parser knows its grammar, not the mistakes that people make: tabs, secrets masked with stars, templates that
were not rendered. Needles are the parts that the messages of both PyYAML parsers share.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tfyard.model.problem import FieldPath, Position, Problem

if TYPE_CHECKING:
    import yaml

QUOTE = "quote the value"
QUOTE_OR_REMOVE = "quote the value or remove the line"
TEMPLATE_FIX = 'quote the template: "{{ name }}", or render the file first'

# Any character that YAML does not allow; the parser reports a byte offset, people need a line. Slow to compile.
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_STARS = re.compile(r"\*{2,}(?=\s|$)")
LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class _Known(NamedTuple):
    needle: str
    message: str
    fix: str
    at_context: bool = False


_KNOWN = (
    _Known("tab character", "a tab is used for indentation, which YAML forbids", "use spaces"),
    _Known("an alias", "a value that starts with * is a YAML alias", QUOTE_OR_REMOVE, True),
    _Known("an anchor", "a value that starts with & is a YAML anchor", QUOTE_OR_REMOVE, True),
    _Known(
        "mapping values are not allowed",
        'unexpected ":"',
        "quote the value that contains it, or correct the indentation",
    ),
    _Known("quoted scalar found unexpected", "the quote opened here is never closed", "close it", True),
    _Known("Unicode character escape", "invalid Unicode escape", "write the character itself"),
    _Known(
        "quoted scalar",
        "invalid escape sequence in double quotes",
        "double the backslash, or use single quotes",
    ),
    _Known(
        "expected key",
        "this line does not belong to the mapping above it",
        "align it with the keys of that mapping",
    ),
    _Known(
        "<block end>",
        "this line does not belong to the lines above it",
        "align it with those lines",
    ),
    _Known(
        "'-' indicator",
        "this line does not belong to the list above it",
        "start it with - or correct its indentation",
    ),
    _Known(
        "flow sequence",
        "the list opened with [ here is malformed",
        "close it with ], separate items with commas",
        True,
    ),
    _Known(
        "flow mapping",
        "the mapping opened with { here is malformed",
        "close it with }, separate pairs with commas",
        True,
    ),
    _Known(
        "sequence entries are not allowed", "a list cannot start here", "put the - on the next line, indented"
    ),
    _Known(
        "expected ':'",
        "this line is neither `key: value` nor a list item",
        "write `key: value`, or quote the text",
        True,
    ),
    _Known("a flow node", "a value is missing inside [ ] or { }", "write it, or close the bracket"),
    _Known("node content", "a value is missing here, or starts with a bracket", QUOTE),
    _Known("undefined tag handle", "a value that starts with ! is a YAML tag", QUOTE, True),
)


def explain(error: "yaml.YAMLError", text: str, path: FieldPath) -> Problem:
    import yaml

    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return _marked(error, text, path)
    found = re.search(_FORBIDDEN, text)
    if found is None:
        return Problem(path, str(error))
    message = f"the character U+{ord(found[0]):04X} is not allowed in YAML"
    fix = (
        "save the file as UTF-8 text"
        if found[0] == "\0"
        else 'remove it, or write it as an escape in "double quotes"'
    )
    return Problem(path, message, fix, position=position_of(text, found.start()))


def without_stars(error: "yaml.YAMLError", text: str) -> str:
    """The text with letters for the stars (`****`) that are this error, to find further ones; else empty."""
    mark: Any = getattr(error, "context_mark", None)
    found = _STARS.match(text, mark.index) if mark is not None else None
    return f"{text[: found.start()]}{'x' * len(found[0])}{text[found.end() :]}" if found else ""


def position_of(text: str, offset: int) -> Position:
    breaks = list(LINE_BREAK.finditer(text, 0, offset))
    start = breaks[-1].end() if breaks else 0
    return Position(len(breaks) + 1, offset - start + 1)


def _marked(error: "yaml.MarkedYAMLError", text: str, path: FieldPath) -> Problem:
    mark: Any = error.problem_mark
    character = text[mark.index : mark.index + 1]
    words = f"{error.context or ''} {error.problem or ''}"
    if "cannot start any token" in words:
        known = _at_character(character)
    else:
        known = next((known for known in _KNOWN if known.needle in words), _Known("", words.strip(), ""))
    if known.at_context and error.context_mark is not None:
        mark = error.context_mark
    fix = TEMPLATE_FIX if "{{" in _line_at(text, mark.index) else known.fix
    return Problem(path, known.message, fix, position=Position(mark.line + 1, mark.column + 1))


def _at_character(character: str) -> _Known:
    return _KNOWN[0] if character == "\t" else _Known("", f"a value cannot start with {character}", QUOTE)


def _line_at(text: str, offset: int) -> str:
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return text[start : end if end >= 0 else len(text)]
