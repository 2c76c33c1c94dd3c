"""The room's promise: contents in, manifests out."""

import ast
from pathlib import Path

ROOM = Path("src/tfyard/render")
FORBIDDEN = {
    "asyncio",
    "datetime",
    "http",
    "multiprocessing",
    "os",
    "random",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "urllib",
    "uuid",
}


def test_nothing_here_touches_clock_environment_network_chance_or_processes() -> None:
    """The scripts are not run here: they are text for pods."""
    found = {
        f"{path}: {name}"
        for path in ROOM.rglob("*.py")
        if path.parent.name != "scripts"
        for name in _imports(path)
        if name.partition(".")[0] in FORBIDDEN
    }
    assert found == set()


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names
