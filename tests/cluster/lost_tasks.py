"""What happens to each strategy when a task is taken away: docs/operator.md has the same table.

tests/e2e/test_lost_tasks.py runs it without a cluster, test_lost_tasks.py on one. The programs are the examples,
and no role of them has a restart policy: nothing but tfyard's answer to disruptions keeps them going.
"""

import re
import shutil
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from tests.cli.running import ROOT


class Row(Struct, frozen=True, kw_only=True):
    strategy: str
    example: str
    """Folder and job file."""
    changes: dict[str, str] = {}
    """Pattern in the job file -> replacement."""
    leader: str = "worker-0"
    """The task that reports how far the training is."""
    lost: str
    all_again: bool = False
    """Whether all tasks start again; otherwise all but the lost one go on."""
    saves_every: int
    """Steps, or epochs, between two checkpoints."""
    saves_when_asked: bool = False
    """Whether it saves when one of its tasks is asked to go, so that no step is lost."""

    @property
    def name(self) -> str:
        return f"{self.strategy}, {self.lost}"

    def write(self, folder: Path) -> str:
        """Copies the example into a folder, its job file as `job.yaml`; the name of the job."""
        source = ROOT / "examples" / self.example
        ignored = shutil.ignore_patterns("__pycache__", "*.yaml")
        shutil.copytree(source.parent, folder, dirs_exist_ok=True, ignore=ignored)
        text = source.read_text()
        defaults = {", restart: [a-z-]+": "", r"\n +restart: [a-z-]+": "", "\ntensorboard: .*": ""}
        for pattern, replacement in {**defaults, **self.changes}.items():
            text, count = re.subn(pattern, replacement, text)
            assert count or pattern in defaults, pattern
        text += "\nretries: 0\n"
        if not self.saves_when_asked:  # what survives SIGTERM must not train to its end in its grace period
            text += "stopGrace: 1s\n"
        (folder / "job.yaml").write_text(text)
        name = re.search("^name: (.*)", text, re.MULTILINE)
        assert name
        return name[1]


COORDINATOR = {
    "strategy": "ParameterServer",
    "example": "cancer/job.yaml",
    "changes": {"--steps 3000": "--steps 4000"},
    "leader": "chief-0",
    "saves_every": 100,
}
BETWEEN_GRAPH = {
    "strategy": "TF 1 between-graph",
    "example": "classic/job.yaml",
    "changes": {"--steps 2000": "--steps 12000"},
    "saves_every": 500,
}
ROWS = (
    Row(
        strategy="MultiWorkerMirrored with the handler",
        example="preemption/multiworker.yaml",
        changes={"--steps 600": "--steps 400"},
        lost="worker-1",
        all_again=True,
        saves_every=50,
        saves_when_asked=True,
    ),
    Row(
        strategy="MultiWorkerMirrored",
        example="mnist/multiworker.yaml",
        changes={"--steps 600": "--steps 6000"},
        lost="worker-1",
        all_again=True,
        saves_every=50,
    ),
    Row(**COORDINATOR, lost="worker-1"),
    Row(**COORDINATOR, lost="ps-0", all_again=True),
    Row(**COORDINATOR, lost="chief-0"),
    Row(**BETWEEN_GRAPH, lost="worker-0"),
    Row(**BETWEEN_GRAPH, lost="worker-1"),
    Row(**BETWEEN_GRAPH, lost="ps-0"),
    Row(
        strategy="independent workers",
        example="resume/job.yaml",
        changes={"count: 1": "count: 2", "/out\n": "/out/$TASK_INDEX\nsuccess: all-workers\n"},
        lost="worker-1",
        leader="worker-1",
        saves_every=1,
        saves_when_asked=True,
    ),
    Row(
        strategy="single worker",
        example="resume/job.yaml",
        lost="worker-0",
        saves_every=1,
        saves_when_asked=True,
    ),
    Row(
        strategy="any",
        example="mnist/evaluator.yaml",
        changes={"--steps 600": "--steps 6000"},
        leader="chief-0",
        lost="evaluator-0",
        saves_every=50,
    ),
)


def steps(lines: Iterable[str]) -> list[int]:
    """The steps, or epochs, that a program reported, also as the ones at which it begins."""
    found = (re.search(r"\b(?:Begins at step|checkpoint of step|Step:|Epoch:) (\d+)", line) for line in lines)
    return [int(each[1]) for each in found if each]


def is_saved(step: int, row: Row) -> bool:
    """Whether there is a checkpoint since which steps may be lost."""
    return step > 2 * row.saves_every


def check_steps(row: Row, reported: list[int]) -> None:
    """A start that goes on from a checkpoint reports steps again that were reported before."""
    lost = max((before - after for before, after in pairwise(reported)), default=0)
    assert lost <= (0 if row.saves_when_asked else row.saves_every), reported
    assert is_saved(reported[-1], row), reported
