"""The tables in docs/why.md: each kind of cause; and the situations that tests make, with what `tfyard why` says.

    python -m tools.why_page      write them

Situations are the corpus of tests/remote/reading/corpus.py: what a row says, a test has read."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.remote.reading.corpus import DEV, LOCAL, NODE, SCRIPTED, SERVER, Row, only_in_our_words, rows
from tfyard.overview.cause_kinds import KINDS

PAGE = Path(__file__).parents[1] / "docs" / "why.md"
CAUSES = re.compile(r"(<!-- causes -->\n).*?(<!-- end -->)", re.DOTALL)
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


def causes() -> str:
    lines = (f'| <a id="{kind}"></a>`{kind}` | {cell(text)} |\n' for kind, text in KINDS.items())
    return f"| kind | what it means, and what to do |\n|---|---|\n{''.join(lines)}"


def written(page: str) -> str:
    page = CAUSES.sub(lambda match: f"{match[1]}{causes()}{match[2]}", page)
    return PLACE.sub(lambda match: f"{match[1]}{tables()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
