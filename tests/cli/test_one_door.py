"""Commands about jobs ask by `Place` and `Jobs`: none of them knows which kind of target it has."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.cli.running import ROOT
from tests.test_layout import imported
from tfyard.cli.main import COMMANDS

CLI = ROOT / "src" / "tfyard" / "cli"
OF_CLUSTERS = {"install", "uninstall", "doctor", "dev", "submit", "diff", "crds", "operator"}
PARTS_OF_SUBMIT = {"submitted_sweep", "afterwards"}
OF_RUNS = {"run", "runs", "sweep"}
DOOR = "target.py"
"""Says where jobs are looked for."""
SIDES = (
    "sdk.on_machine",
    "sdk.on_cluster",
    "sdk.runs_on_machine",
    "sdk.jobs_on_cluster",
    "sdk.sweep_on_machine",
    "sdk.sweep_on_cluster",
)
BY_NAMESPACE = {"dashboard/addresses.py", "dashboard/bearer.py", "cli/dashboard.py", "cli/render.py"}
"""How the page writes where a job is, the two that read this when they look for the job, and an option."""
KINDS = {"OnMachine", "OnCluster", "RunsOnMachine", "JobsOnCluster", "SweepOnMachine", "SweepOnCluster"}


def is_of(module: str, *rooms: str) -> bool:
    return any(f"{module}.".startswith(f"tfyard.{room}.") for room in rooms)


def about_jobs() -> list[Path]:
    apart = {f"{name}.py" for name in OF_CLUSTERS | PARTS_OF_SUBMIT | OF_RUNS}
    return [path for path in CLI.glob("*.py") if path.name not in apart]


def test_the_commands_that_are_about_one_kind_only_are_these() -> None:
    assert set(COMMANDS) >= OF_CLUSTERS | OF_RUNS
    assert len(about_jobs()) > 30


def test_no_command_about_jobs_imports_what_is_only_of_runs_or_only_of_clusters() -> None:
    wrong = [
        f"{path.name}: {module}"
        for path in about_jobs()
        for module in imported(path)
        if is_of(module, "local", "remote", "backends") or (is_of(module, *SIDES) and path.name != DOOR)
    ]
    assert wrong == []


def test_no_command_asks_which_kind_of_target_it_has() -> None:
    """Neither by its class, nor by what only one kind has."""
    asking = []
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            is_question = isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "isinstance",
                "type",
                "hasattr",
            )
            names = (
                {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} if is_question else set()
            )
            if names & KINDS:
                asking.append(f"{path.name}:{node.lineno}")
    assert asking == []


def test_commands_about_runs_need_nothing_of_a_cluster() -> None:
    runs = [*(CLI / f"{name}.py" for name in OF_RUNS), *(CLI / "screen").glob("*.py")]
    wrong = [f"{path.name}: {each}" for path in runs for each in imported(path) if is_of(each, "remote")]
    assert wrong == []


def conditions(tree: ast.AST) -> Iterator[ast.AST]:
    """What the program branches on; `a or default` is no branch."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from parts(node.test)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from parts(node.operand)
        elif isinstance(node, ast.comprehension):
            for each in node.ifs:
                yield from parts(each)


def parts(node: ast.AST) -> list[ast.AST]:
    return [part for each in node.values for part in parts(each)] if isinstance(node, ast.BoolOp) else [node]


def test_nothing_concludes_from_an_empty_namespace_where_a_job_is() -> None:
    """What differs between the two, `Place` or the row of a list says."""
    concluding = []
    for path in [*CLI.rglob("*.py"), *(CLI.parent / "dashboard").rglob("*.py")]:
        name = str(path.relative_to(CLI.parent))
        for node in conditions(ast.parse(path.read_text())):
            is_bare = isinstance(node, ast.Attribute) and node.attr in ("namespace", "is_local")
            if is_bare and name not in BY_NAMESPACE:
                concluding.append(f"{name}:{node.lineno}")
    assert concluding == []
