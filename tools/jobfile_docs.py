"""Generates the tables of docs/jobfile.md and docs/sweep.md from the declarations of the words.

python tools/jobfile_docs.py
"""

import re
from pathlib import Path

from tfyard.formats.declarations import explaining

PAGES = [Path(__file__).parents[1] / "docs" / name for name in ("jobfile.md", "sweep.md")]
_TABLE = re.compile(r"<!-- words: ?(\S*?)( without (\S+))? -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """The page with every table generated. `without worker` omits words that are also in the table of worker."""
    return _TABLE.sub(lambda mark: _table(mark[0].split("\n")[0], mark[1], mark[3]), page)


def _table(mark: str, field: str, without: str | None) -> str:
    left_out = set(explaining.explain(without).fields) if without else set()
    rows = ["| word | type | meaning |", "|---|---|---|"]
    for name in explaining.explain(field).fields:
        if name not in left_out:
            explained = explaining.explain(f"{field}.{name}" if field else name)
            kind = explained.type.replace("|", "\\|")
            rows.append(f"| `{name}` | {kind} | {explained.description.replace('|', chr(92) + '|')} |")
    return "\n".join([mark, *rows, "<!-- end -->"])


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
