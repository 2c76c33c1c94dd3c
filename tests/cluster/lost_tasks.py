"""What happens to each strategy when a task is taken away: docs/operator.md has the same table.

tests/e2e/test_lost_tasks.py runs it without a cluster, test_lost_tasks.py on one. The programs are the examples, and
no role of them has a restart policy: nothing but tfyard's answer to disruptions keeps them going.
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
        (folder / "job.yaml").write_text(text)
        name = re.search("^name: (.*)", text, re.MULTILINE)
        assert name
        return name[1]


SOON = {"stopGrace: 2m.*": "stopGrace: 5s"}
"""Programs with TensorFlow's own handler survive SIGTERM: new starts wait for the whole grace period."""
COORDINATOR = {"strategy": "ParameterServer", "example": "cancer/job.yaml", "leader": "chief-0", "saves_every": 100}
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
    ),
    Row(
        strategy="MultiWorkerMirrored",
        example="mnist/multiworker.yaml",
        changes={"--steps 600": "--steps 400", "\nvolumes:": "\nstopGrace: 5s\nvolumes:"},
        lost="worker-1",
        all_again=True,
        saves_every=100,
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
    ),
    Row(strategy="single worker", example="resume/job.yaml", lost="worker-0", saves_every=1),
    Row(
        strategy="any",
        example="mnist/evaluator.yaml",
        changes={"--steps 600": "--steps 400"},
        leader="chief-0",
        lost="evaluator-0",
        saves_every=100,
    ),
)


def steps(lines: Iterable[str]) -> list[int]:
    """The steps, or epochs, that a program reported."""
    return [int(each[1]) for line in lines if (each := re.match(r"(?:.*: )?(?:Step|Epoch):? (\d+)", line))]


def lost_steps(reported: list[int]) -> int:
    """Most steps that were trained twice: a start reports again what it had reported before."""
    return max((before - after for before, after in pairwise(reported)), default=0)
