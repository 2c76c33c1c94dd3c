"""What an operator costs: `python bench/operator [COMMAND] [--beside COMMAND] [--scale 0.1]`.

A command starts any operator of kubeflow.org/v1 TFJobs, ours by default; `{kubeconfig}` and `{port}` in it are
filled in. Each scenario runs as a bare loop of our client that makes the same objects with no operator at all,
which is the limit; then with the operator; then with the other one, if given. Each time on a control plane of its
own, in turn, as many rounds as asked for; the median of each figure is shown. The kubelet comes when all pods
exist, unless told otherwise: until then the loop and the operator have the machine alone.

Instead: `--ends`, jobs that all run end at the same time, until the last is told; `--growth`, what larger
scenarios cost per replica beside smaller ones; `--idle JOBS`, finished jobs and nothing to do.

A folder and not `bench/operator.py`: scripts see their own folder first, and would take that for the standard
library's `operator`. Ratios are what counts; they are printed, never asserted.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for the tests' small helpers

from box import Scenario
from ends import ends
from growth import growth
from idle import idle
from limit import bare_loop
from operated import Figures, operated

OURS = f"{sys.executable} -m tfyard operator --kubeconfig {{kubeconfig}} --no-leader-elect"
OURS += " --bind 127.0.0.1:{port} --log text"
SCENARIOS = (Scenario(100, 4), Scenario(1, 1000), Scenario(1000, 1), Scenario(1000, 10))
USUAL = SCENARIOS[:3]
PATIENCE = 900.0


class Cost(Struct, frozen=True, kw_only=True):
    """One scenario: the limit of each round, and each command's figures."""

    scenario: Scenario
    limits: list[float]
    rounds: dict[str, list[Figures]]

    @property
    def jobs(self) -> int:
        return self.scenario.jobs

    @property
    def total(self) -> int:
        return self.scenario.total

    @property
    def limit(self) -> float:
        return median(self.limits)


def measure(commands: list[str], scenario: Scenario, given: argparse.Namespace) -> Cost:
    cost = Cost(scenario=scenario, limits=[], rounds={command: [] for command in commands})
    for _ in range(given.rounds):
        cost.limits.append(asyncio.run(bare_loop(scenario)))
        for command in commands:
            running = operated(command, scenario, given.kubelet_first)
            cost.rounds[command].append(asyncio.run(asyncio.wait_for(running, PATIENCE)))
    return cost


# What is said. Each row takes the cost and one round's figures.

Row = Callable[[Cost, Figures], float]
ROWS: tuple[tuple[str, str, Row], ...] = (
    ("all pods exist, s", ".2f", lambda _, f: f.pods),
    ("  ratio to the bare loop", ".2f", lambda c, f: f.pods / c.limit),
    ("all succeeded, s", ".2f", lambda _, f: f.done),
    ("status behind, p99, s", ".2f", lambda _, f: f.lag),
    ("writes per replica", ".2f", lambda c, f: f.counts.writes.total() / c.total),
    ("  beyond 1 per replica, per job", ".1f", lambda c, f: (f.counts.writes.total() - c.total) / c.jobs),
    ("bytes written per replica", ".0f", lambda c, f: f.counts.sent / c.total),
    ("CPU, s", ".2f", lambda _, f: f.cpu),
    ("peak memory, MB", ".0f", lambda _, f: f.memory),
)


def show(costs: list[Cost], commands: list[str]) -> None:
    print(f"{'':34}" + "".join(f"{c.scenario!s:>12}" for c in costs))
    print(f"{'bare loop, s':34}" + "".join(f"{c.limit:>12.2f}" for c in costs))
    for command in commands:
        print(command)
        for name, form, value in ROWS:
            found = (median(value(c, f) for f in c.rounds[command]) for c in costs)
            print(f"  {name:32}" + "".join(f"{each:>12{form}}" for each in found))
        for cost in costs:
            writes = dict(cost.rounds[command][-1].counts.writes)
            print(f"  {cost.scenario} wrote, last: {writes}")
    if len(commands) > 1:
        show_beside(costs, commands)


def show_beside(costs: list[Cost], commands: list[str]) -> None:
    """Rounds are compared one by one: the machine may change from one to the next."""
    print("ours as a part of the other's, the median of the rounds")
    for name, _, value in ROWS[:1] + ROWS[2:]:
        pairs = [zip(*(cost.rounds[command] for command in commands), strict=True) for cost in costs]
        ratios = (
            median(value(cost, a) / (value(cost, b) or 1) for a, b in pair)
            for cost, pair in zip(costs, pairs, strict=True)
        )
        print(f"  {name:32}" + "".join(f"{ratio:>12.2f}" for ratio in ratios))


def show_idle(commands: list[str], jobs: int) -> None:
    for command in commands:
        cost = asyncio.run(idle(command, jobs))
        print(f"{jobs} finished jobs: {cost.share:.2%} of a core, {cost.memory:.0f} MB at most: {command}")


def show_ends(commands: list[str], scenario: Scenario, rounds: int) -> None:
    told: dict[str, list[float]] = {command: [] for command in commands}
    for _ in range(rounds):
        for command in commands:
            found = asyncio.run(asyncio.wait_for(ends(command, scenario), PATIENCE))
            told[command].append(found.told)
            cpu = f"CPU {found.cpu:.2f} s, the server's {found.server_cpu:.2f} s"
            print(f"{found.ended:6.2f} s ended, {found.told:6.2f} s told, {cpu}: {command}")
    ratios = [a / b for a, b in zip(told[commands[0]], told[commands[-1]], strict=True)]
    print(f"{scenario} ended at once: told after {median(told[commands[0]]):.2f} s (median)")
    if len(commands) > 1:
        print(f"  as a part of the other's: {median(ratios):.2f} (target 1.00)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an operator costs, beside a bare loop.")
    parser.add_argument("command", nargs="?", default=OURS, help="starts an operator; {kubeconfig}, {port}")
    parser.add_argument("--beside", metavar="COMMAND", help="another operator, measured in the same run")
    parser.add_argument("--rounds", type=int, default=1, help="how often, in turn; medians are shown")
    parser.add_argument("--scale", type=float, default=1.0, help="0.1: a quick look")
    parser.add_argument(
        "--only", type=int, choices=(1, 2, 3, 4), help="one scenario: 100x4, 1x1000, 1000x1; 4: 1000x10"
    )
    parser.add_argument("--kubelet-first", action="store_true", help="pods start while others are made")
    parser.add_argument("--ends", action="store_true", help="instead: 1000x1 that end at the same time")
    parser.add_argument(
        "--growth", action="store_true", help="instead: what larger scenarios cost per replica"
    )
    parser.add_argument("--idle", type=int, metavar="JOBS", help="instead: the cost of so many finished jobs")
    return parser.parse_args()


def scaled(scenario: Scenario, scale: float) -> Scenario:
    def part(number: int) -> int:
        return number if number <= 10 else max(1, round(number * scale))

    return Scenario(part(scenario.jobs), part(scenario.replicas), scenario.namespaces)


def main() -> int:
    given = parse()
    commands = [given.command, *([given.beside] if given.beside else [])]
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if given.idle:
        show_idle(commands, given.idle)
    elif given.ends:
        show_ends(commands, scaled(SCENARIOS[2], given.scale), given.rounds)
    elif given.growth:
        for command in commands:
            growth(command, lambda scenario: scaled(scenario, given.scale), given.rounds)
    else:
        chosen = [SCENARIOS[given.only - 1]] if given.only else USUAL
        show([measure(commands, scaled(each, given.scale), given) for each in chosen], commands)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
