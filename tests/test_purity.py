"""The pure rooms: text and values in, values out. They are given time, place and world; they never fetch them."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tfyard"
ROOMS = ("model", "views", "formats", "planner", "render", "logs", "overview", "install")
# The scripts are text for pods: they run in images, never here.
MODULES = sorted(
    path for room in ROOMS for path in (SOURCE / room).rglob("*.py") if "scripts" not in path.parts
)

_IMPORTS = (
    "aiohttp asyncio ctypes fcntl getpass glob http io locale multiprocessing os platform pty random requests"
    " secrets select shutil signal socket ssl subprocess sys tempfile threading time urllib uuid"
)
_CALLS = (
    "breakpoint exec eval input open now utcnow today fromtimestamp getenv urandom system popen Popen"
    " write_text write_bytes mkdir touch unlink rmdir rename chmod symlink_to iterdir glob rglob cwd home"
)
FORBIDDEN_IMPORTS, FORBIDDEN_CALLS = frozenset(_IMPORTS.split()), frozenset(_CALLS.split())
READERS = frozenset({"read_text", "read_bytes", "open"})
READS_PACKAGE_DATA = frozenset({"formats/pods/fields.py"})
PACKS_IN_MEMORY = {"render/archive.py": frozenset({"io", "open"})}
NO_DATES = "render"
"""Manifests are the same bytes every time; the other rooms calculate with times that they are given."""


def name_of(module: Path) -> str:
    return module.relative_to(SOURCE).as_posix()


def offences(module: Path, tree: ast.AST) -> Iterator[str]:
    allowed = PACKS_IN_MEMORY.get(name_of(module), frozenset())
    dates = {"datetime"} if module.is_relative_to(SOURCE / NO_DATES) else set()
    forbidden = (FORBIDDEN_IMPORTS | dates) - allowed
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = {alias.name.partition(".")[0] for alias in node.names} & forbidden
            yield from (f"line {node.lineno}: imports {name}" for name in sorted(found))
        elif isinstance(node, ast.ImportFrom) and not node.level:
            root = (node.module or "").partition(".")[0]
            if root in forbidden:
                yield f"line {node.lineno}: imports from {root}"
        elif isinstance(node, ast.Call):
            called = _called(node)
            if called in READERS and name_of(module) in READS_PACKAGE_DATA:
                continue
            if called in (FORBIDDEN_CALLS | READERS) - allowed:
                yield f"line {node.lineno}: calls {called}()"


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_pure_module_touches_no_clock_environment_network_chance_or_process(module: Path) -> None:
    assert list(offences(module, ast.parse(module.read_text()))) == []


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_a_pure_module_says_what_it_is_for(module: Path) -> None:
    docstring = ast.get_docstring(ast.parse(module.read_text()))
    assert docstring
    assert len(docstring.split()) >= 5, "a sentence, not a title"


IMPURE = {
    "a clock": "import time",
    "a part of a clock": "from datetime import datetime\ndatetime.now()",
    "the date": "import datetime\ndatetime.date.today()",
    "the environment": "import os\nos.environ['A']",
    "the environment by its shortcut": "from os import environ",
    "chance": "from random import choice",
    "a process": "import subprocess",
    "the network": "import urllib.request",
    "a file to write": "open('x', 'w')",
    "a file to write by its path": "from pathlib import Path\nPath('x').write_text('y')",
    "a file to read": "from pathlib import Path\nPath('x').read_text()",
}


@pytest.mark.parametrize("text", IMPURE.values(), ids=IMPURE.keys())
def test_the_rule_itself_finds(text: str) -> None:
    assert list(offences(SOURCE / "planner" / "decide.py", ast.parse(text)))


def test_the_rule_itself_finds_dates_in_manifests() -> None:
    assert list(offences(SOURCE / "render" / "jobs.py", ast.parse("from datetime import datetime")))
