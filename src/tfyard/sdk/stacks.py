"""What the programs of a job are doing: the stacks of their threads, with the permissions of the user."""

import re
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from tfyard.logs.lines import Lines, LogSelection
from tfyard.render import scripts
from tfyard.sdk.place import CommandEnded, CommandOutput, Place

PROBE = scripts.read("stacks.py")
IN_CONTAINER = ("/bin/sh", "-c", 'exec "$(command -v python3 || command -v python)" -c "$0"', PROBE)
"""The command that prints the stacks in a container."""
MOST_TASKS = 16
ANSWER = 1.0
"""Seconds that a program has to print its stacks, after it was asked by a signal."""
ANSWER_LINES = 200
_OF_FAULTHANDLER = re.compile(rb"(?:Current thread|Thread) 0x|Stack \(most recent call first\)")


class ProgramStacks(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One Python process of a task, or why nothing is known of the task."""

    task: str
    pid: int = 0
    command: str = ""
    stacks: str = ""
    asked: bool = False
    """Whether it was asked by a signal, and the stacks are from its log."""
    problem: str = ""


async def gathered(place: Place, tasks: Sequence[str]) -> list[ProgramStacks]:
    """The stacks of the programs in these tasks, in the order of the tasks."""
    found = {ended.task: programs async for ended, programs in _answers(place.stacks(tasks[:MOST_TASKS]))}
    return [each for task in tasks for each in found.get(task, ())]


def with_answers(place: Place, since: datetime, found: Iterable[ProgramStacks]) -> list[ProgramStacks]:
    """The stacks, with what programs that were asked by a signal have printed since then."""
    found = list(found)
    if any(each.asked for each in found):
        time.sleep(ANSWER)
    return [_answered(place, since, each) if each.asked else each for each in found]


def now() -> datetime:
    """The time from which on answers in logs count: logs of a cluster are asked for since a whole second."""
    return datetime.now(UTC).replace(microsecond=0)


async def _answers(
    events: AsyncIterator[CommandOutput | CommandEnded],
) -> AsyncIterator[tuple[CommandEnded, list[ProgramStacks]]]:
    written: dict[tuple[str, int], bytes] = {}
    async for event in events:
        if isinstance(event, CommandOutput):
            key = event.task, event.stream
            written[key] = written.get(key, b"") + event.data
        else:
            out, err = (written.get((event.task, stream), b"") for stream in (1, 2))
            yield event, _programs(event, out, err)


def _programs(ended: CommandEnded, out: bytes, err: bytes) -> list[ProgramStacks]:
    if ended.problem or ended.code:
        told = err.decode("utf-8", "replace").strip().rpartition("\n")[2]
        why = str(ended.problem or "") or f"no Python runs there: {told or f'exit code {ended.code}'}"
        return [ProgramStacks(task=ended.task, problem=why)]
    programs = [ProgramStacks(task=ended.task, **each) for each in msgspec.json.decode(out)]
    return programs or [ProgramStacks(task=ended.task, problem="no Python program runs in it")]


def _answered(place: Place, since: datetime, asked: ProgramStacks) -> ProgramStacks:
    """What the program has printed since it was asked, from the first line that is about a stack."""
    wanted = LogSelection(tasks=(asked.task,), since=since)
    texts = [text for event in place.logs(wanted) if isinstance(event, Lines) for text in event.texts]
    first = next((at for at, text in enumerate(texts) if _OF_FAULTHANDLER.search(text)), None)
    if first is None:
        problem = f"{asked.problem}; the program caught SIGUSR1, and printed no stack"
        return msgspec.structs.replace(asked, problem=problem)
    shown = b"\n".join(texts[first : first + ANSWER_LINES]).decode("utf-8", "replace")
    return msgspec.structs.replace(asked, stacks=shown, problem="")
