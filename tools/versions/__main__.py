"""`python -m tools.versions [SUBJECT [VERSION]...]`: test with these versions, or all, and write the table."""

import sys
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries, pinned_version
from tfyard.controlplane.binaries.download import Mirrors
from tfyard.controlplane.binaries.obtain import obtain
from tools.versions import (
    PAGE,
    VERSIONS,
    Result,
    Subject,
    environments,
    load,
    page,
    pins,
    record,
    runs,
)
from tools.versions.environments import NotToBeHad, version_of


def say(line: str) -> None:
    print(line, flush=True)


def result_of(subject: Subject, minor: str) -> Result:
    if subject == "python":
        python = environments.with_python(minor, say)
        return runs.run(subject, version_of(python), python, {})
    if subject == "tensorflow":
        python = environments.with_tensorflow(minor, say)
        version = f"{version_of(python, 'tensorflow')}, Python {version_of(python)}"
        return runs.run(subject, version, python, {})
    folder = obtain(say, Mirrors.chosen({}), pins(minor))
    assets = {"KUBEBUILDER_ASSETS": str(folder)}
    return runs.run(subject, pinned_version(pins=pins(minor)), Path(sys.executable), assets)


def run(subject: Subject, minor: str) -> bool:
    """Whether nothing failed. What cannot be had stays untested."""
    say(f"==> {subject} {minor}")
    try:
        result = result_of(subject, minor)
    except runs.NotRun as problem:
        say(f"{subject} {minor}: {problem}")
        return False
    except (NotToBeHad, MissingBinaries) as problem:
        say(f"untested: {subject} {minor}: {problem}")
        return True
    record(subject, minor, result)
    say(f"{subject} {result.version}: {result.passed} passed, {result.skipped} skipped")
    for name in result.failed:
        say(f"    failed: {name}")
    return not result.failed


def main(words: list[str]) -> int:
    wanted = [each for each in VERSIONS if words[:1] in ([], [each])]
    if words[:1] not in ([], ["page"]) and not wanted:
        print(f"one of {', '.join(VERSIONS)} or page, not {words[0]}", file=sys.stderr)
        return 2
    outcomes = [run(subject, minor) for subject in wanted for minor in words[1:] or VERSIONS[subject]]
    PAGE.write_text(page.written(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
