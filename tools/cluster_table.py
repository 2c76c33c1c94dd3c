"""The table in CONTRIBUTING.md of what tests/cluster covers, and where: on the real node, and on `tfyard dev`.

    python tools/cluster_table.py      write it

A row says what the docstring and the marks of its file say."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
PLACE = re.compile(r"(<!-- tests/cluster -->\n).*?(<!-- end -->)", re.DOTALL)
HEADING = "| tests/cluster | what users do | on the node | on `tfyard dev` |\n|---|---|---|---|\n"
IMAGES = '"registry"'
"""The fixture of tests that pull images, which `tfyard dev` does not use."""


def row(file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    doc = " ".join((ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].split())
    return f"| `{file.name}` | {doc} | `make test-node` | {on_dev(text)} |\n"


def on_dev(text: str) -> str:
    """The marks of a whole file come before its first test, those of single tests after that."""
    whole, _, single = text.partition("\ndef ")
    if IMAGES in whole:
        return "not there: no images are used"
    if "mark.long" in whole:
        return "`make test-long`"
    return "`make test`, `make test-long`" if "mark.long" in single else "`make test`"


def written(page: str) -> str:
    files = sorted((ROOT / "tests" / "cluster").glob("test_*.py"))
    table = HEADING + "".join(map(row, files))
    return PLACE.sub(lambda match: f"{match[1]}{table}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
