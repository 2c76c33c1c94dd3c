"""The versions of Kubernetes, Python and TensorFlow that tfyard says it works with, and what its tests say.

    make test-versions
    python -m tools.versions kubernetes 1.33      # one of them
    python -m tools.versions page                 # the table of docs/install.md

Each run writes what came of it into `results.json` beside this file, with date and commit. What was never run is
untested, and the table says so.
"""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tfyard.controlplane.binaries import HERE as PINNED
from tfyard.controlplane.binaries import cache_folder, pinned_version

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "install.md"

Subject = Literal["kubernetes", "python", "tensorflow"]
VERSIONS: dict[Subject, tuple[str, ...]] = {
    "kubernetes": ("1.33", "1.34", "1.35", "1.36"),
    "python": ("3.11", "3.12", "3.13", "3.14"),
    "tensorflow": ("2.16", "2.17", "2.18", "2.19", "2.20", "2.21"),
}


class Result(Struct, frozen=True, kw_only=True):
    """What came of the tests with one version."""

    version: str
    """All of it, such as 1.33.13; with TensorFlow, Python's too."""
    date: str
    commit: str
    """Empty: an earlier state, which the history no longer has."""
    passed: int
    skipped: int
    failed: tuple[str, ...]
    """The tests that failed."""


Results = dict[Subject, dict[str, Result]]


def load(file: Path = RESULTS) -> Results:
    return msgspec.json.decode(file.read_bytes(), type=Results) if file.exists() else {}


def record(subject: Subject, minor: str, result: Result, file: Path = RESULTS) -> None:
    """Beside what is known of other versions, in the order of the table."""
    known = load(file)
    known.setdefault(subject, {})[minor] = result
    ordered = {
        each: {minor: known[each][minor] for minor in VERSIONS[each] if minor in known[each]}
        for each in VERSIONS
        if each in known
    }
    file.write_bytes(msgspec.json.format(msgspec.json.encode(ordered)) + b"\n")


def pins(minor: str) -> Path:
    """The folder with go.mod and go.sum of this Kubernetes."""
    return PINNED if pinned_version().startswith(f"{minor}.") else HERE / f"kubernetes-{minor}"


def environment(name: str) -> Path:
    """The folder of an environment in the cache."""
    return cache_folder("versions").parent / name
