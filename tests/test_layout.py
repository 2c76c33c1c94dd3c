"""A newcomer finds things by file name, and reads a function in one breath."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.cli.running import ROOT

SOURCE = ROOT / "src" / "tfyard"
MODULES = sorted(SOURCE.rglob("*.py"))
BESIDE = {"cluster", "documents", "golden", "e2e", "tools"}
LONGEST_FUNCTION, LONGEST_FILE, MOST_PARAMETERS = 45, 400, 7
ONE_IMPORTER = 1 / 7
"""Share of modules that exactly one other imports. Each is one more file to open: merge it into that one, unless
it is a clear subject of its own."""
NAMES = {
    module: ".".join(module.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for module in MODULES
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[Path, Function]]:
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, Function):
                yield module, node


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def imported(module: Path) -> set[str]:
    """The modules of ours that it imports, at the top or inside of functions."""
    package = NAMES[module] if module.name == "__init__.py" else NAMES[module].rpartition(".")[0]
    found = set[str]()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names = {f"{base}.{each.name}" for each in node.names}
            found |= {name if name in NAMES.values() else base for name in names}
    return found & set(NAMES.values())


def places() -> list[str]:
    """The rows of the table of places."""
    table = (ROOT / "CONTRIBUTING.md").read_text().split("## Where to change what")[1].split("\n## ")[0]
    return [row for row in table.replace("src/tfyard/", "").splitlines() if row.startswith("|")]


def files_of(row: str) -> list[str]:
    return re.findall(r"`([\w/]+\.py|[\w/]+/)`", row)


def named_files() -> list[str]:
    return [name for row in places() for name in files_of(row)]


def test_the_ten_questions_of_a_newcomer_are_answered() -> None:
    assert len(set(named_files())) >= 10


def test_no_change_needs_more_than_three_files() -> None:
    assert [row for row in places() if len(files_of(row)) > 3] == []


def test_every_file_that_contributing_names_exists() -> None:
    assert [name for name in named_files() if not (SOURCE / name).exists()] == []


def test_the_architecture_page_names_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    rooms = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    files = {path.name for path in SOURCE.glob("[!_]*.py")}
    missing = [
        name for name in rooms | files if not re.search(rf"(^|\s){re.escape(name)}\s", page, re.MULTILINE)
    ]
    assert missing == []


def test_every_file_that_the_architecture_page_names_exists() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([\w/]+/\w+\.py)`", page)
    known = {path.relative_to(SOURCE).as_posix() for path in MODULES}
    known |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    known |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "tools").rglob("*.py")}
    missing = [name for name in named if not any(path == name or path.endswith(f"/{name}") for path in known)]
    assert missing == []


def test_functions_are_short_and_take_few_parameters() -> None:
    found = list(functions())
    sizes = sorted(lines(function) for _, function in found)
    assert sizes[len(sizes) * 9 // 10] <= 20
    too_long = [f"{module}:{f.lineno} {f.name}" for module, f in found if lines(f) > LONGEST_FUNCTION]
    too_wide = [
        f"{module}:{f.lineno} {f.name}"
        for module, f in found
        if len(f.args.args) + len(f.args.kwonlyargs) > MOST_PARAMETERS
    ]
    assert (too_long, too_wide) == ([], [])


def inner_imports(node: ast.AST, *, is_inside: bool = False) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports in functions, the first of those that follow each other. Those below `extras.needs` say why."""
    is_inside = is_inside or isinstance(node, Function | ast.Lambda)
    before: ast.AST | None = None
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            if is_inside and not isinstance(before, ast.Import | ast.ImportFrom):
                yield child
        elif not (isinstance(child, ast.With) and "needs(" in ast.unparse(child.items[0])):
            yield from inner_imports(child, is_inside=is_inside)
        before = child


def says_why(node: ast.stmt, source: Sequence[str]) -> bool:
    last = (node.end_lineno or node.lineno) - 1
    return any("# " in each for each in (source[node.lineno - 2], source[node.lineno - 1], source[last]))


def test_an_import_in_a_function_says_what_it_saves() -> None:
    """On its line, above it, or once at the top for the whole file."""
    silent = set[str]()
    for module in MODULES:
        source = module.read_text().splitlines()
        is_said = any(line.startswith("#") and " import" in line for line in source)
        if not is_said and "scripts" not in module.parts:
            tree = ast.parse("\n".join(source))
            silent |= {NAMES[module] for each in inner_imports(tree) if not says_why(each, source)}
    assert silent == set()


def test_no_file_is_longer_than_a_reader_can_bear() -> None:
    assert [str(module) for module in MODULES if module.read_text().count("\n") > LONGEST_FILE] == []


def test_few_modules_have_one_importer() -> None:
    importers = Counter(name for module in MODULES for name in imported(module))
    alone = [name for name, count in importers.items() if count == 1]
    assert len(alone) <= ONE_IMPORTER * len(MODULES), sorted(alone)


def test_the_tests_mirror_the_rooms() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()} | BESIDE
    folders = {path.parent.relative_to(ROOT / "tests").parts[:1] for path in ROOT.glob("tests/**/test_*.py")}
    assert {folder[0] for folder in folders if folder} <= rooms


def test_each_class_name_is_defined_once() -> None:
    """Apart from those that Python programs use: `tfyard.Job` is words for a job, `aio.Run` a `Run` to await. An
    underscore makes no other name."""
    names = Counter(
        each.name.lstrip("_")
        for file in MODULES
        for each in ast.parse(file.read_text()).body
        if isinstance(each, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == {"Job", "Run", "Sweep", "SweepTrial"}
