"""Lines of logs as HTML, each with its address, and which of them a page shows."""

from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from markupsafe import Markup, escape
from msgspec import Struct

from tfyard.dashboard.feed import LogLine
from tfyard.errors import Usage
from tfyard.logs.lines import chosen

SHOWN = 500
"""Lines on a page at first, and at most in one step of a stream."""


class LogChoice(Struct, frozen=True):
    """The part of a job's address that chooses lines."""

    tasks: str = ""
    """Tasks and roles, as of `tfyard logs`: `worker-0 ps`."""
    search: str = ""
    at: str = ""
    """The id of the line that the address is of."""
    problem: str = ""

    @property
    def is_whole(self) -> bool:
        return not self.tasks and not self.search


def read(query: Mapping[str, str]) -> LogChoice:
    return LogChoice(query.get("task", "").strip(), query.get("find", "").strip(), query.get("at", ""))


def filter_of(choice: LogChoice, tasks: Sequence[str]) -> Callable[[LogLine], bool]:
    """The predicate that says whether a line is shown. Raises Usage if a word means no task."""
    names = set(chosen(choice.tasks.replace(",", " ").split(), tasks)) if choice.tasks else None
    text = choice.search.casefold()

    def fits(line: LogLine) -> bool:
        if names is not None and line.start.task and line.start.task not in names:
            return False
        return not text or (not line.remark and text in line.text.casefold())

    return fits


def checked(choice: LogChoice, tasks: Sequence[str]) -> tuple[LogChoice, Callable[[LogLine], bool]]:
    """The filter of a choice; a word that means no task is told on the page, and shows everything."""
    try:
        return choice, filter_of(choice, tasks)
    except Usage as problem:
        whole = LogChoice("", choice.search, choice.at, str(problem))
        return whole, filter_of(whole, tasks)


def html(lines: Sequence[LogLine], tasks: Sequence[str], marked: str = "") -> Markup:
    colours = {task: at % 8 for at, task in enumerate(tasks)}
    return Markup(
        "\n".join(_row(line, colours, f"?at={quote(line.id, safe='')}#log", marked) for line in lines)
    )


def saved(lines: Sequence[LogLine], tasks: Sequence[str], most: int) -> tuple[Markup, int]:
    """The newest lines of each task whose HTML has at most this size in all, for a file, and the number of those
    that are left out. A task that writes much does not take the room of the others."""
    colours = {task: at % 8 for at, task in enumerate(tasks)}
    rest: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        rest.setdefault(line.start.task, []).append(number)
    rows, size = dict[int, str](), 0
    while rest:
        for task in list(rest):
            number = rest[task].pop()
            row = _row(lines[number], colours, f"#{quote(lines[number].id, safe='')}", "")
            size += len(row.encode()) + 1
            if size <= most:
                rows[number] = row
            if size > most or not rest[task]:
                del rest[task]
    return Markup("\n".join(rows[number] for number in sorted(rows))), len(lines) - len(rows)


def _row(line: LogLine, colours: Mapping[str, int], address: str, marked: str) -> str:
    name = line.start.name
    if line.remark:
        label = f"<b>{escape(name)}</b>" if name else ""
        return f'<li class="remark">{label}<span>{escape(line.text)}</span></li>'
    at, key = escape(line.stamp), escape(line.id)
    time = f'<time datetime="{at}" data-shows="short">{at[11:19]}</time>' if line.stamp else "<i>#</i>"
    mark = ' class="marked"' if line.id == marked else ""
    colour = colours.get(line.start.task, 0)
    return (
        f'<li id="{key}"{mark}><a href="{escape(address)}">{time}</a>'
        f'<b class="t{colour}">{escape(name)}</b><span>{escape(line.text)}</span></li>'
    )
