"""The table in docs/install.md of the versions that are tested.

python -m tools.versions page      write it
"""

import re

from tools.versions import VERSIONS, Result, Results

PLACE = re.compile(r"(<!-- tools/versions -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"kubernetes": "Kubernetes", "python": "Python", "tensorflow": "TensorFlow"}
HEADING = "| version | tests | of |\n|---|---|---|\n"


def written(page: str, results: Results) -> str:
    rows = "".join(
        f"| {TITLES[subject]} {_row(minor, results.get(subject, {}).get(minor))} |\n"
        for subject, minors in VERSIONS.items()
        for minor in minors
    )
    return PLACE.sub(lambda match: f"{match[1]}{HEADING}{rows}{match[2]}", page)


def _row(minor: str, result: Result | None) -> str:
    if result is None:
        return f"{minor} | untested |"
    return f"{result.version} | {_outcome(result)} | {result.date}, {result.commit}"


def _outcome(result: Result) -> str:
    skipped = f", {result.skipped} skipped" if result.skipped else ""
    if not result.failed:
        return f"{result.passed} passed{skipped}"
    return f"**{len(result.failed)} failed**, {result.passed} passed{skipped}"
