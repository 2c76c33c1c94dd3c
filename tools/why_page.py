"""The tables in docs/why.md of the situations that tests make, and what `tfyard why` says of each.

    python -m tools.why_page      write them

They are the corpus of tests/remote/reading/corpus.py: what a row says, a test has read."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.remote.reading.corpus import DEV, LOCAL, NODE, SCRIPTED, SERVER, Row, only_in_our_words, rows

PAGE = Path(__file__).parents[1] / "docs" / "why.md"
PLACE = re.compile(r"(<!-- situations -->\n).*?(<!-- end -->)", re.DOTALL)
PARTS = {
    (SERVER,): "Said by the API server, the scheduler and controllers",
    (DEV, NODE): "Said by kubelets: on `tfyard dev`, and on a real node",
    (NODE,): "Said about images: on a real node",
    (SCRIPTED,): "Said in words of kubelets that tests repeat",
    (LOCAL,): "Programs, as real processes on this machine",
}
"""Where situations were made -> heading."""
HEADING = "| situation | `tfyard why` says | fix | exit code | kind |\n|---|---|---|---|---|\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def line(row: Row, marked: Iterable[str]) -> str:
    kind = f"`{row.kind}`" + ("\\*" if row.kind in marked else "") if row.kind else ""
    return f"| {cell(row.situation)} | {cell(row.sentence)} | {cell(row.fix)} | {row.code} | {kind} |\n"


def tables() -> str:
    marked, parts = only_in_our_words(), []
    for where, title in PARTS.items():
        lines = (line(row, marked) for row in rows() if row.where == where)
        parts.append(f"\n### {title}\n\n{HEADING}{''.join(lines)}")
    return "".join(parts) + "\n"


def written(page: str) -> str:
    return PLACE.sub(lambda match: f"{match[1]}{tables()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
