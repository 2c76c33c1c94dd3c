"""The exception that ended a Python program, from the end of its log: its type, what it says in one line, and the
innermost line of the user's own code."""

import re
from textwrap import dedent

from msgspec import Struct

_FRAME = r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in .+)?$'
_NOT_OWN = r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<string>$|__autograph_generated_file"
_RAISED = r"^(?P<type>[A-Za-z_][\w.]*[a-z]\w*)(?::(?: (?P<text>.*))?)?$"
_USUAL = r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Iteration))(?::(?: (?P<text>.*))?)?$"
"""Of an exception whose frames are cut off."""
_GROUP = r"^ *[|+] ?"
_NODE = r"\[\[\{\{node |\[Op:\w+\]"
_LATER = ("", "Graph execution error:")
_AUTOGRAPH = "in user code:"
LONGEST = 240


class Frame(Struct, frozen=True):
    file: str
    line: int

    @property
    def is_own(self) -> bool:
        """Not of Python, nor of an installed package."""
        return re.search(_NOT_OWN, self.file) is None


class Raised(Struct, frozen=True):
    type: str
    text: str
    """One line, however long the message was."""
    where: Frame | None = None
    """The innermost line of the user's own code."""
    whole: str = ""
    """All that follows the frames."""

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name

    @property
    def place(self) -> str:
        return f"{self.where.file}:{self.where.line}" if self.where else ""


def last_exception(log: str) -> Raised | None:
    """The last one that was printed with frames: that is the one that ended the program. Else the last line that
    reads like an exception, because the end of a log may begin after the frames."""
    lines = [re.sub(_GROUP, "", line) for line in log.split("\n")]
    frames: list[Frame] = []
    found: Raised | None = None
    pattern = _USUAL
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent"):
            frames, pattern = [], _RAISED
        elif frame := re.match(_FRAME, line):
            frames.append(Frame(frame["file"], int(frame["line"])))
        elif frames and (raised := re.match(pattern, line)):
            found, frames, pattern = _raised(raised, lines[number:], frames), [], _USUAL
    return found or _without_frames(lines)


def _without_frames(lines: list[str]) -> Raised | None:
    for number in range(len(lines) - 1, -1, -1):
        if raised := re.match(_USUAL, lines[number]):
            return _raised(raised, lines[number:], [])
    return None


def _raised(raised: "re.Match[str]", lines: list[str], frames: list[Frame]) -> Raised:
    own = [frame for frame in frames if frame.is_own]
    text = (raised["text"] or "").strip()
    if text == _AUTOGRAPH and (inner := last_exception(dedent("\n".join(lines[1:])))):
        return inner
    if text in _LATER:
        text = _graph_error(lines[1:]) or text
    return Raised(raised["type"], _one_line(text), own[-1] if own else None, "\n".join(lines))


def _graph_error(lines: list[str]) -> str:
    """TensorFlow puts its own stack before what went wrong, and the node's name after it."""
    for number, line in enumerate(lines):
        if re.search(_NODE, line):
            before = [each.strip() for each in lines[:number] if each.strip()]
            text = line.split("\t [[")[0].split(" [Op:")[0].strip()
            text = text if text and not text.startswith("[[") else (before[-1] if before else "")
            return text.lstrip(": ")
    return ""


def _one_line(text: str) -> str:
    """An array that is printed in an error would fill the screen."""
    text = " ".join(text.split()).split(" for '{{node ")[0]
    text = re.sub(r"\s*[\(\[{:]*\s*$", "", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
