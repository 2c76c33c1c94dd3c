"""Lines as a terminal may show them: without control characters, with or without colours."""

import re

SCREEN_LINE, LONGEST_LINE = 4_000, 1 << 20
"""Characters of a line that are kept, for a screen and for other readers."""

# Whatever moves the cursor, changes the terminal or talks to it is taken out whole; colours (CSI … m) stay.
# It is compiled on first use, because that takes a while.
_CONTROL = (
    r"(?s)(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]).*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, SOS, PM, APC and their text
    r"|(?!\x1b\[[0-9;:]*m)(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, except colours
    r"|\x1b(?!\[)[ -/]*[0-~]?"  # other escapes, with their parameters
    r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]"
)
_CONTROL_BYTES = bytes({*range(32), 127} - {ord("\t"), ord("\n")})
_COLOUR = r"\x1b(?:\[[0-9;:]*m)?"
_RESET = "\x1b[0m"


def clean_lines(data: bytes, longest: int = LONGEST_LINE) -> str:
    """Lines as a terminal may show them. Nearly all are plain text, which is recognized at once."""
    if data.isascii() and len(data) <= longest and len(data.translate(None, _CONTROL_BYTES)) == len(data):
        return data.decode("ascii")
    return "\n".join(clean(line, longest) for line in data.split(b"\n"))


def plain_lines(data: bytes, longest: int = LONGEST_LINE) -> list[str]:
    """Lines as a file may have them: without colours, too."""
    return without_colours(clean_lines(data, longest)).split("\n")


def clean(line: bytes, longest: int = SCREEN_LINE) -> str:
    """A line as a terminal may show it. A progress bar rewrites its line by `\\r`: the last state is shown."""
    text = last_state(line)[: 4 * longest].decode("utf-8", "replace")
    text = text if text.isprintable() else re.sub(_CONTROL, "", text)
    return text if len(text) <= longest else f"{text[:longest]}… (the line is longer)"


def last_state(line: bytes) -> bytes:
    """What a terminal shows of a line that was rewritten by `\\r`."""
    return line[line.rstrip(b"\r").rfind(b"\r") + 1 :]


def without_colours(text: str) -> str:
    return re.sub(_COLOUR, "", text) if "\x1b" in text else text


def with_reset_colours(text: str) -> str:
    """Lines whose colours end with them."""
    if "\x1b" not in text:
        return text
    return "\n".join(line + _RESET if "\x1b" in line else line for line in text.split("\n"))
