"""The live screen: log lines, and below them an area with the state of each role and of the training."""

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from msgspec import Struct
from rich.console import Console, Group, RenderableType
from rich.control import Control
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import ControlType
from rich.table import Table
from rich.text import Text

from tfyard.cli.screen import colours
from tfyard.cli.screen.base import Screen, ScreenOptions
from tfyard.cli.screen.rows import hanging
from tfyard.logs.runtime_notices import Fold
from tfyard.model.run_events import (
    Counts,
    Ended,
    Log,
    Note,
    Phase,
    ResourceUsage,
    RunEvent,
    Skipped,
    Started,
    Unfinished,
)
from tfyard.overview.progress import Progress
from tfyard.overview.wording import (
    PROGRAM,
    TOOL,
    duration,
    ending,
    folded,
    size,
    skipped,
    starting_again,
)

LINES_PER_FLUSH = 200
ASK_AFTER = 0.2
"""Seconds after which a line without an end is shown as a question; most are ended before."""
FLUSH_EVERY = 0.1
FEW_TASKS = 4
MOST_METRICS = 5
BAR, SHORTEST_BAR = 30, 8
"""Columns of the progress bar."""
MOST_BARS = 8
PHASE_COLOURS = {
    "Running": "green",
    "Succeeded": "green",
    "Failed": "red",
    "Restarting": "yellow",
    "Stalled": "yellow",
}


class _ScreenLine(Struct, frozen=True):
    task: str
    text: str
    mark: str = PROGRAM
    style: str = ""


class LiveScreen(Screen):
    may_skip = True

    def __init__(self, look: ScreenOptions, progress: Progress) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._width, self._asks = look.width, look.asks
        self._colours = colours.of_tasks(look.tasks)
        self._began = time.monotonic()
        self._phase, self._counts = "Created", Counts({}, {})
        self._usage: dict[str, tuple[float, int]] = {}
        self._lines: deque[_ScreenLine] = deque()
        self._unfinished: dict[str, str] = {}
        """Task -> its unfinished line, such as a progress bar."""
        self._question: tuple[str, str, float] | None = None
        """A line that may be a question: task, text, and when it was written."""
        self._is_asking = False
        """The question is shown, and the cursor is behind it, where the user types; the area below is hidden."""
        self._fold = Fold(active=not look.verbose)
        self._flushed = 0.0
        self.progress = progress
        # No thread of its own: it would print lines at the same time as `show`, and change their order.
        self._live = Live(
            console=self._console, get_renderable=self._area, auto_refresh=False, transient=True
        )

    def __enter__(self) -> "LiveScreen":
        self._is_asking = False
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._live.stop()

    def show(self, event: RunEvent) -> None:
        match event:
            case Log(task, text):
                self._unfinished.pop(task, None)
                self._question = None
                self._lines.extend(_ScreenLine(task, line) for line in self._fold.shown(task, text))
            case Unfinished(task, text, is_rewritten):
                is_question = self._asks and text and not is_rewritten
                self._question = (task, text, time.monotonic()) if is_question else None
                self._unfinished[task] = "" if is_question else text
                self._end_question()
            case Skipped(task, lines):
                self._say(task, skipped(lines))
            case Started(task, start, _) if start > 1:
                self._say(task, starting_again(start))
            case Ended(task, code):
                self._end(task, ending(event) if code or event.stopped else "")
            case Phase(phase, _):
                self._phase = phase
            case Counts():
                self._counts = event
            case ResourceUsage(tasks):
                self._usage = tasks
            case Note(level, text):
                self._say("", f"[{level}] {text}")
        if time.monotonic() - self._flushed > FLUSH_EVERY:
            self._flush()

    def refresh(self) -> None:
        self._flush()
        if self._question and not self._is_asking and time.monotonic() - self._question[2] > ASK_AFTER:
            self._ask(*self._question[:2])
        elif not self._is_asking:
            self._live.refresh()

    def _ask(self, task: str, text: str) -> None:
        self._live.stop()
        self._console.print(self._label(task, PROGRAM).append_text(Text.from_ansi(text)), end="")
        self._is_asking = True

    def _end_question(self) -> None:
        """Show the area again. What follows begins in the row of the question, unless the user has ended it."""
        if self._is_asking:
            self._console.control(Control((ControlType.CARRIAGE_RETURN,), (ControlType.ERASE_IN_LINE, 2)))
            self.__enter__()

    def _end(self, task: str, text: str) -> None:
        self._unfinished.pop(task, None)
        if count := self._fold.report(task):
            self._say(task, folded(count), "dim")
        if text:
            self._say(task, text)

    def _say(self, task: str, text: str, style: str = "") -> None:
        self._lines.append(_ScreenLine(task, text, TOOL, style))

    def _flush(self) -> None:
        """Print waiting lines. Rich takes 0.1 ms per line, so of very many only the last are printed."""
        self._flushed = time.monotonic()
        if self._lines:
            self._end_question()
        hidden = Counter(self._lines.popleft().task for _ in range(len(self._lines) - LINES_PER_FLUSH))
        for task, count in hidden.items():
            self._print(_ScreenLine(task, skipped(count), TOOL))
        while self._lines:
            self._print(self._lines.popleft())

    def _print(self, line: _ScreenLine) -> None:
        label = self._label(line.task, line.mark)
        if line.mark == TOOL:
            message = hanging(label.plain + line.text, self._console.width)
            rows = [label.append(message[len(label) :], style=line.style)]
        else:
            text = Text.from_ansi(line.text)
            text.expand_tabs()
            rows = [label + row for row in self._wrapped(text, self._console.width - label.cell_len)]
        for row in rows:
            self._console.print(row, soft_wrap=True)

    def _wrapped(self, text: Text, room: int) -> Iterable[Text]:
        if text.cell_len <= room:
            return [text]
        return text.wrap(self._console, max(room, 2), overflow="fold")

    def _label(self, task: str, mark: str) -> Text:
        """Label of a row. Every row of a long line has it, so that no output of a program starts a row."""
        label = Text()
        if task:
            label.append(f"{task:<{self._width}} {mark} ", style=self._colours.get(task, "white"))
        return label

    def _area(self) -> RenderableType:
        parts: list[RenderableType] = [*self._bars(), self._headline(), self._roles()]
        if self.progress.step is not None or self.progress.values:
            parts += self._training()
        return Group(*parts)

    def _bars(self) -> Iterator[RenderableType]:
        """The unfinished lines, each cut to one row."""
        begun = [(task, text) for task, text in self._unfinished.items() if text]
        for task, text in begun[-MOST_BARS:]:
            row = self._label(task, PROGRAM).append_text(Text.from_ansi(text))
            row.truncate(self._console.width, overflow="ellipsis")
            yield row

    def _headline(self) -> Text:
        line = Text("─ ", style="dim")
        line.append(self._phase or "Created", style=f"bold {PHASE_COLOURS.get(self._phase, 'white')}")
        line.append(f" · {duration(time.monotonic() - self._began)}", style="dim")
        if count := self._fold.total:
            line.append(f" · {folded(count)}", style="dim")
        line.truncate(self._console.width, overflow="ellipsis")
        return line

    def _roles(self) -> Table:
        table, ready = Table.grid(padding=(0, 2)), self._counts.ready
        names, counts = (max(map(len, column), default=0) for column in (ready.keys(), ready.values()))
        again = {role: f"{count} restarts" for role, count in self._counts.restarts.items() if count}
        room = self._console.width - (
            2 + names + 2 + counts + 2 + max(map(len, again.values()), default=0) + 2
        )
        for role, count in ready.items():
            restarts = Text(again.get(role, ""), style="yellow")
            table.add_row(Text(f"  {role}", style="bold"), count, self._used(role, room), restarts)
        return table

    def _used(self, role: str, room: int) -> Text:
        """CPU and memory of each task of a role, or their sum if these do not fit."""
        mine = {task: use for task, use in self._usage.items() if task.startswith(f"{role.lower()}-")}
        line = Text(no_wrap=True, overflow="ellipsis")
        for task, (cpu, memory) in sorted(mine.items()):
            line.append(f"{task.rpartition('-')[2]}: ", style=self._colours.get(task, "white"))
            line.append(f"{cpu:.1f} CPU {size(memory)}   ", style="dim")
        line.rstrip()
        if len(mine) > FEW_TASKS or line.cell_len > room:
            cpu, memory = (sum(column) for column in zip(*mine.values(), strict=True))
            return Text(
                f"{cpu:.1f} CPU {size(memory)} in all", style="dim", no_wrap=True, overflow="ellipsis"
            )
        return line

    def _training(self) -> Iterator[RenderableType]:
        """Position, bar and speed in a row, and the metrics behind them, or below where the terminal is narrow."""
        progress, width = self.progress, self._console.width
        left = "" if progress.seconds_left is None else f"{duration(progress.seconds_left)} left"
        speed = [f"{progress.rate:.3g}/s"] if progress.rate else []
        words = [f"  {progress.position()}", *speed, *filter(None, [left])]
        taken = sum(len(each) + 2 for each in words)
        bar = min(BAR, width - taken) if progress.total else 0
        cells: list[RenderableType] = [Text(each, no_wrap=True) for each in words]
        if bar >= SHORTEST_BAR:
            done = min(progress.step or 0, progress.total or 0)
            cells.insert(1, ProgressBar(progress.total, done, width=bar))
        beside = width - taken - (BAR + 2 if progress.total else 0)
        metrics = progress.metrics(MOST_METRICS)
        table = Table.grid(padding=(0, 2))
        table.add_row(*cells, *([Text(metrics, style="bold")] if len(metrics) <= beside else []))
        yield table
        if len(metrics) > beside:
            yield Text(f"  {_fitting(progress, width - 2)}", style="bold", no_wrap=True, overflow="ellipsis")


def _fitting(progress: Progress, room: int) -> str:
    """The first metrics, as many as fit into a row, but at least one."""
    whole = progress.metrics(MOST_METRICS)
    fewer = (f"{progress.metrics(most)}  …" for most in range(MOST_METRICS - 1, 0, -1))
    return next((text for text in (whole, *fewer) if len(text) <= room), progress.metrics(1))
