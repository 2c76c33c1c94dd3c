"""Sentences about programs that ended because other tasks were taken away: that is no failure of theirs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tfyard.model import Ending
from tfyard.model.exit_codes import SAVED
from tfyard.overview.cause import named

ALL_AGAIN = "all tasks start again together, and that costs no retry"
HANDLER = "as TensorFlow's PreemptionCheckpointHandler does"


def sentence(tasks: str, exit_code: int | None, peer: str) -> str:
    """How these tasks ended, and why."""
    gone = f"{peer} was evicted or deleted"
    if exit_code in SAVED:
        return f"{tasks} saved a checkpoint and ended with code {exit_code}, {HANDLER}: {gone}"
    return f"{tasks} failed because {gone}"


def sentences(endings: Iterable[Ending]) -> Iterator[str]:
    """A sentence for each disruption, about all tasks that ended alike because of it."""
    alike: dict[tuple[int | None, str], list[str]] = defaultdict(list)
    for ending in endings:
        if ending.peer:
            alike[ending.exit_code if ending.exit_code in SAVED else None, ending.peer].append(ending.task)
    for (code, peer), tasks in alike.items():
        yield f"{sentence(named(tasks), code, peer)}; that costs no retry"
