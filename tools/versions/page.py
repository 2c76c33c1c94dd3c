"""The table in docs/install.md of the versions that are tested.

python -m tools.versions page      write it
"""

import re

from tools.versions import VERSIONS, Result, Results

PLACE = re.compile(r"(<!-- tools/versions -->\n).*?(<!-- end -->)", re.DOTALL)
TITLES = {"kubernetes": "Kubernetes", "python": "Python", "tensorflow": "TensorFlow"}
HEADING = "| version | tests | last run, commit |\n|---|---|---|\n"


def written(page: str, results: Results) -> str:
    rows = "".join(
        f"| {TITLES[subject]} {_row(minor, results.get(subject, {}).get(minor))} |\n"
        for subject, minors in VERSIONS.items()
        for minor in minors
    )
    return PLACE.sub(lambda match: f"{match[1]}{HEADING}{rows}{_failures(results)}{match[2]}", page)


def _failures(results: Results) -> str:
    """A list below the table: what failed, test by test."""
    lines = [
        f"- {TITLES[subject]} {result.version}: {', '.join(dict.fromkeys(map(_test, result.failed)))}\n"
        for subject, known in results.items()
        for result in known.values()
        if result.failed
    ]
    return f"\nWhat failed:\n\n{''.join(lines)}" if lines else ""


def _test(name: str) -> str:
    """A test by its file and name, without its parameters and its group of pytest."""
    module, _, test = name.split("[")[0].partition("@")[0].rpartition(".")
    return f"`{module.rpartition('.')[2]}` {test.removeprefix('test_').replace('_', ' ')}"


def _row(minor: str, result: Result | None) -> str:
    if result is None:
        return f"{minor} | untested |"
    return f"{result.version} | {_outcome(result)} | {result.date}, {result.commit or 'an earlier state'}"


def _outcome(result: Result) -> str:
    skipped = f", {result.skipped} skipped" if result.skipped else ""
    if not result.failed:
        return f"{result.passed} passed{skipped}"
    return f"**{len(result.failed)} failed**, {result.passed} passed{skipped}"
