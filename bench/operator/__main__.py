"""Measures what an operator costs: `python bench/operator [COMMAND] [--beside COMMAND] [--scale 0.1]`.

A command starts any operator of kubeflow.org/v1 TFJobs, tfyard's by default; `{kubeconfig}` and `{port}` in it are
replaced. Each scenario runs as a bare loop of tfyard's client that makes the same objects without an operator,
which is the limit; then with the operator; then with the other one, if given. Each run has a control plane of its
own; rounds are in turn, and the median of each figure is shown. The kubelet starts when all pods exist, unless
`--kubelet-first`: until then the loop and the operator have the machine alone.

Other measurements: `--ends`, jobs that end at the same time, until the last has succeeded; `--growth`, the cost
per replica of larger scenarios beside smaller ones; `--idle JOBS`, finished jobs and nothing to do; `--tenants`,
one pod of a tenant while the pods of another are admitted slowly.

This is a folder and not `bench/operator.py`: scripts see their own folder first, and would take that for the
standard library's `operator`. Only the ratios matter; they are printed, never asserted.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for the tests' small helpers

import upstream
from ends import Ends, ends
from growth import growth
from idle import idle
from limit import bare_loop
from operated import Figures, operated
from scenarios import Scenario
from tenants import TARGET, tenants

from tfyard.formats.tfjob.versions import V1

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


def measure(commands: list[str], scenario: Scenario, arguments: argparse.Namespace) -> Cost:
    cost = Cost(scenario=scenario, limits=[], rounds={command: [] for command in commands})
    for number in range(arguments.rounds):
        tell(f"{scenario}, round {number + 1} of {arguments.rounds}: the bare loop")
        cost.limits.append(asyncio.run(bare_loop(scenario)))
        for command in commands:
            tell(f"{scenario}, round {number + 1} of {arguments.rounds}: {command}")
            running = operated(command, scenario, arguments.kubelet_first)
            figures = asyncio.run(asyncio.wait_for(running, PATIENCE))
            cost.rounds[command].append(figures)
            tell(
                f"  all succeeded after {figures.done:.1f} s, CPU of the apiserver {figures.server_cpu:.1f} s"
            )
    return cost


def tell(text: str) -> None:
    """A line about the progress, beside the figures."""
    print(text, file=sys.stderr, flush=True)


# The output. Each row takes the cost and one round's figures.

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
    ("CPU of the apiserver, s", ".2f", lambda _, f: f.server_cpu),
    ("peak memory, MB", ".0f", lambda _, f: f.memory),
)


def show(costs: list[Cost], commands: list[str]) -> None:
    print(f"{'':34}" + "".join(f"{c.scenario!s:>12}" for c in costs))
    print(f"{'bare loop, s':34}" + "".join(f"{c.limit:>12.2f}" for c in costs))
    for command in commands:
        print(command)
        for name, form, value in ROWS:
            medians = (median(value(c, f) for f in c.rounds[command]) for c in costs)
            print(f"  {name:32}" + "".join(f"{each:>12{form}}" for each in medians))
        for cost in costs:
            writes = dict(cost.rounds[command][-1].counts.writes)
            print(f"  {cost.scenario} wrote, last: {writes}")
    for other in commands[1:]:
        show_beside(costs, commands[0], other)


def show_beside(costs: list[Cost], first: str, other: str) -> None:
    """Print ratios of both operators, round by round, because the machine's load changes."""
    print(f"ratio of the first operator to {other}, median of the rounds")
    for name, _, value in ROWS[:1] + ROWS[2:]:
        pairs = [zip(cost.rounds[first], cost.rounds[other], strict=True) for cost in costs]
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
    results: dict[str, list[Ends]] = {command: [] for command in commands}
    for _ in range(rounds):
        for command in commands:
            tell(f"{scenario} that end at once: {command}")
            result = asyncio.run(asyncio.wait_for(ends(command, scenario), PATIENCE))
            results[command].append(result)
            cpu = f"CPU {result.cpu:.2f} s, the server's {result.server_cpu:.2f} s"
            print(
                f"{result.ended:6.2f} s ended, {result.reported:6.2f} s reported, {cpu}: {command}",
                flush=True,
            )
    ours = results[commands[0]]
    print(f"{scenario} ended at once: reported after {median(each.reported for each in ours):.2f} s (median)")
    for other in commands[1:]:
        pairs = list(zip(ours, results[other], strict=True))
        time = median(a.reported / b.reported for a, b in pairs)
        cpu = median(a.server_cpu / b.server_cpu for a, b in pairs)
        print(f"  to {other}: time {time:.2f} (target 1.00), CPU of the apiserver {cpu:.2f} (target 0.75)")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What an operator costs, beside a bare loop.")
    parser.add_argument(
        "command", nargs="?", default=OURS, help="command line of an operator, with {kubeconfig} and {port}"
    )
    parser.add_argument(
        "--beside",
        action="append",
        default=[],
        metavar="COMMAND",
        help="another operator in the same run, or training-operator; may be repeated",
    )
    parser.add_argument("--rounds", type=int, default=1, help="number of rounds; medians are shown")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor for the size of scenarios, such as 0.1"
    )
    parser.add_argument(
        "--only", type=int, choices=(1, 2, 3, 4), help="one scenario: 100x4, 1x1000, 1000x1; 4: 1000x10"
    )
    parser.add_argument(
        "--v1-only", action="store_true", help="serve TFJobs as v1 only, as training-operator's CRD does"
    )
    parser.add_argument("--kubelet-first", action="store_true", help="pods start while others are created")
    parser.add_argument(
        "--ends", action="store_true", help="measure instead 1000x1 that end at the same time"
    )
    parser.add_argument(
        "--growth", action="store_true", help="measure instead the cost per replica of larger scenarios"
    )
    parser.add_argument(
        "--tenants", action="store_true", help="measure instead one pod beside slow ones of another tenant"
    )
    parser.add_argument("--idle", type=int, metavar="JOBS", help="measure instead the cost of finished jobs")
    return parser.parse_args()


def scaled(scenario: Scenario, scale: float, *, v1_only: bool) -> Scenario:
    def part(number: int) -> int:
        return number if number <= 10 else max(1, round(number * scale))

    versions = (V1,) if v1_only else scenario.versions
    return replace(scenario, jobs=part(scenario.jobs), replicas=part(scenario.replicas), versions=versions)


def main() -> int:
    arguments = parse()
    given = [arguments.command, *arguments.beside]
    commands = [upstream.command() if each == upstream.NAME else each for each in given]
    sized = partial(scaled, scale=arguments.scale, v1_only=arguments.v1_only)
    print(f"load before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    if arguments.idle:
        show_idle(commands, arguments.idle)
    elif arguments.tenants:
        for command in commands:
            waited = asyncio.run(asyncio.wait_for(tenants(command), PATIENCE))
            print(f"the other tenant's pod after {waited:.2f} s (target {TARGET:.0f} s): {command}")
    elif arguments.ends:
        show_ends(commands, sized(SCENARIOS[2]), arguments.rounds)
    elif arguments.growth:
        for command in commands:
            growth(command, sized, arguments.rounds)
    else:
        chosen = [SCENARIOS[arguments.only - 1]] if arguments.only else USUAL
        show([measure(commands, sized(each), arguments) for each in chosen], commands)
    print(f"load after: {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
