"""Measures how long one decision takes: the first pass of a job (all is created) and a steady one (nothing is).

The best of several runs is printed, because other work on the machine only makes a run longer.
"""

import gc
import time
from collections.abc import Callable
from datetime import UTC, datetime

from tfyard.model import Create, Decision, Job, Observed, Pod, Role, Status
from tfyard.model.names import pod_name
from tfyard.planner import Site, decide

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SIZES = (100, 1_000, 10_000)
RUNS = 7
TEMPLATE = {
    "spec": {"containers": [{"name": "tensorflow", "image": "tf", "command": ["python", "train.py"]}]}
}


def main() -> None:
    print(f"{'replicas':>9} {'first pass':>12} {'steady pass':>12}   (best of {RUNS}, ms per decide)")
    before: tuple[float, float] | None = None
    for size in SIZES:
        first, steady = measure(size)
        growth = f"   x{first / before[0]:.1f}, x{steady / before[1]:.1f}" if before else ""
        print(f"{size:>9,} {first:>12.2f} {steady:>12.2f}{growth}")
        before = (first, steady)
    print("Ten times the replicas should cost about ten times as much.")


def measure(size: int) -> tuple[float, float]:
    job = large_job(size)
    status = decide(job, Observed(), Site(), NOW).status
    running = observe(job, status)
    running = observe(job, decide(job, running, Site(), NOW).status)
    steady = decide(job, running, Site(), NOW)
    assert steady.actions == ()
    assert steady.status == running.status
    return (
        best(lambda: decide(job, Observed(), Site(), NOW)),
        best(lambda: decide(job, running, Site(), NOW)),
    )


def large_job(size: int) -> Job:
    servers = max(1, size // 20)
    roles = (("Chief", 1), ("Worker", size - servers - 1), ("PS", servers))
    made = tuple(Role(name=name, replicas=count, template=TEMPLATE) for name, count in roles)
    return Job(name="bench", uid="u", roles=made)


def observe(job: Job, status: Status) -> Observed:
    pods = tuple(
        Pod(name=pod_name(job.name, task), uid=str(i), task=task, phase="Running", ready=True)
        for i, task in enumerate(job.tasks())
    )
    made = [a for a in decide(job, Observed(), Site(), NOW).actions if isinstance(a, Create)]
    children = frozenset((a.kind, a.name) for a in made if a.kind != "Pod")
    return Observed(status=status, pods=pods, children=children)


def best(run: Callable[[], Decision]) -> float:
    gc.collect()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1000


if __name__ == "__main__":
    main()
