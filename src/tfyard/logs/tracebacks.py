"""The exception that ended a Python program, from the end of its log: its type, its message in one line, and the
innermost line of the user's own code; and the exception before it, if Python printed a chain."""

import re
from collections.abc import Iterator
from textwrap import dedent

from msgspec import Struct
from msgspec.structs import replace

_FRAME = r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in .+)?$'
_NOT_OWN = r"/(?:site|dist)-packages/|/lib(?:64)?/python\d|^<frozen |^<string>$|__autograph_generated_file"
_RAISED = r"^(?P<type>[A-Za-z_][\w.]*[a-z]\w*)(?::(?: (?P<text>.*))?)?$"
_USUAL = r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Iteration))(?::(?: (?P<text>.*))?)?$"
"""Last line of an exception whose frames are missing."""
_LINKS = {
    "During handling of the above exception, another exception occurred:": "while it handled",
    "The above exception was the direct cause of the following exception:": "because of",
}
_FATAL = r"^Fatal Python error: (?P<text>.+)$"
"""Message of Python's faulthandler, which prints the innermost frame first."""
_EMBEDS = r"\w+(?:Error|Exception): "
"""Message of TensorFlow that contains the exception of a function, often without the user's lines."""
_GROUP = r"^ *[|+] ?"
_NODE = r"\[\[\{\{node |\[Op:\w+\]"
_LATER = ("", "Graph execution error:")
_AUTOGRAPH = "in user code:"
_IN_LAYER = r"^Exception encountered when calling .*\.$|^Could not automatically infer .* Error encountered:$"
"""First line of an error of Keras, which prints the message below it."""
_INTERNAL = r"\{\{function_node [^}]*\}\} | ?\[Op:\w+\](?: name:.*)?$|\x1b\[[0-9;]*m"
_DETAIL = r"^(?:\s+\S|[-*•] |\d+[.)] )"
MOST_DETAILS, LONGEST = 4, 240


class Frame(Struct, frozen=True):
    file: str
    line: int

    @property
    def is_own(self) -> bool:
        """Whether the file belongs to the user: neither to Python nor to an installed package."""
        return re.search(_NOT_OWN, self.file) is None


class Raised(Struct, frozen=True):
    type: str
    text: str
    """The message in one line, shortened if it is long."""
    where: Frame | None = None
    """The innermost line of the user's own code."""
    whole: str = ""
    """All lines that follow the frames."""
    innermost: str = ""
    """The file that raised the exception."""
    before: "Raised | None" = None
    """The exception that was printed before this one."""
    link: str = ""
    """How the exception before led to this one; empty: it did not."""

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]

    @property
    def sentence(self) -> str:
        return f"{self.name}: {self.text}" if self.text else self.name

    @property
    def position(self) -> str:
        return f"{self.where.file}:{self.where.line}" if self.where else ""


def last_exception(log: str) -> Raised | None:
    """The last exception that was printed with frames: it ended the program. Without one, the last line that looks
    like an exception, because the end of a log may begin after the frames."""
    lines = [re.sub(_GROUP, "", line) for line in log.split("\n")]
    last, outer = None, None
    for raised, link in _printed(lines):
        raised = raised if raised.where else replace(raised, where=outer)
        outer = raised.where if re.match(_EMBEDS, raised.text) else outer
        last = _joined(replace(last, before=None) if last else None, raised, link)
    return last or _without_frames(lines)


def fatal_error(log: str) -> Raised | None:
    """The error that faulthandler printed for an interpreter that crashed."""
    lines = log.split("\n")
    for number in range(len(lines) - 1, -1, -1):
        if fatal := re.match(_FATAL, lines[number]):
            frames = [frame for line in lines[number:] if (frame := _frame(line))]
            own = [frame for frame in frames if frame.is_own]
            return Raised("Fatal Python error", fatal["text"], own[0] if own else None)
    return None


def _printed(lines: list[str]) -> Iterator[tuple[Raised, str]]:
    """Each exception with its frames, and how the exception before led to it."""
    frames: list[Frame] = []
    pattern, link = _USUAL, ""
    for number, line in enumerate(lines):
        if line.startswith("Traceback (most recent"):
            frames, pattern = [], _RAISED
        elif line in _LINKS:
            link = _LINKS[line]
        elif frame := _frame(line):
            frames.append(frame)
        elif frames and (raised := re.match(pattern, line)):
            yield _raised(raised, lines[number:], frames), link
            frames, pattern, link = [], _USUAL, ""


def _frame(line: str) -> Frame | None:
    match = re.match(_FRAME, line)
    return Frame(match["file"], int(match["line"])) if match else None


def _joined(before: Raised | None, raised: Raised, link: str) -> Raised:
    """An exception with the one before it. The same exception twice comes from another process, whose own frames
    are printed first."""
    if before is not None and link and before.sentence == raised.sentence and before.where:
        return replace(raised, where=before.where)
    return replace(raised, before=before, link=link)


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
    return Raised(
        type=raised["type"],
        text=_one_line(_message(text, lines[1:])),
        where=own[-1] if own else None,
        whole="\n".join(lines),
        innermost=frames[-1].file if frames else "",
    )


def _message(first: str, following: list[str]) -> str:
    """The message of an exception, which may begin below the first line."""
    if first in _LATER:
        return _graph_error(following) or first
    if re.match(_IN_LAYER, first):
        return next((line for line in following if line.strip()), first)
    return f"{first} {_details(following)}" if first.endswith((":", ",")) else first


def _details(following: list[str]) -> str:
    """The next line and a list below it: a log does not show where a message ends."""
    details = [line for line in following[:1] if line.strip()]
    for line in [each for each in following[len(details) :] if each.strip()][:MOST_DETAILS]:
        if not re.match(_DETAIL, line):
            break
        details.append(line)
    return " ".join(details)


def _graph_error(lines: list[str]) -> str:
    """The message of a graph error: TensorFlow prints its own stack before it, and the node's name after it."""
    for number, line in enumerate(lines):
        if re.search(_NODE, line):
            before = [each.strip() for each in lines[:number] if each.strip()]
            text = line.split("\t [[")[0].split(" [Op:")[0].strip()
            text = text if text and not text.startswith("[[") else (before[-1] if before else "")
            return text.lstrip(": ")
    return ""


def _one_line(text: str) -> str:
    """The message in one short line: an array that is printed in an error would fill the screen."""
    text = " ".join(re.sub(_INTERNAL, "", text).split()).split(" for '{{node ")[0]
    text = re.sub(r"\s*[\(\[{:]*\s*$", "", text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
