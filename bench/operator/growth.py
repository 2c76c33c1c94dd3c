"""Measures what a replica costs in a large scenario, beside a smaller one of the same shape."""

import asyncio
from collections.abc import Callable
from statistics import median

from operated import Figures, operated
from scenarios import Scenario

PAIRS = (
    (Scenario(1, 1000), Scenario(1, 2000)),
    (Scenario(1000, 1), Scenario(4000, 1)),
    (Scenario(1000, 1), Scenario(1000, 1, namespaces=200)),
)
"""One job of more than about 2,010 replicas is impossible with the whole cluster in TF_CONFIG: the kernel takes no
environment string beyond 128 KiB."""
ALLOWED = 1.3

Row = tuple[str, Callable[[Figures], float]]
ROWS: tuple[Row, ...] = (
    ("all pods exist", lambda f: f.pods),
    ("all succeeded", lambda f: f.done),
    ("CPU", lambda f: f.cpu),
)


def growth(command: str, scaled: Callable[[Scenario], Scenario], rounds: int) -> None:
    print(command)
    for small, large in PAIRS:
        compare(command, scaled(small), scaled(large), rounds)


def compare(command: str, small: Scenario, large: Scenario, rounds: int) -> None:
    measured: dict[Scenario, list[Figures]] = {small: [], large: []}
    for _ in range(rounds):
        for scenario, figures in measured.items():
            figures.append(asyncio.run(operated(command, scenario, kubelet_first=False)))
    memory = {scenario: median(f.memory for f in figures) for scenario, figures in measured.items()}
    print(f"  {small} and {large}: {memory[small]:.0f} and {memory[large]:.0f} MB")
    for name, value in ROWS:
        each = {s: median(value(f) for f in figures) / s.total * 1000 for s, figures in measured.items()}
        ratio = each[large] / each[small]
        verdict = "ok" if ratio <= ALLOWED else "MISSED"
        print(
            f"    {name:16} {each[small]:7.2f} {each[large]:7.2f} ms per replica, {ratio:.2f} times {verdict}"
        )
