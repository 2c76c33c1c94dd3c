"""The manifests and job files under tests/data as documents, and helpers for tests of them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tfyard import formats, planner
from tfyard.model import Decision, Job, Observed

DATA = Path(__file__).parents[1] / "data"
SEEDS = sorted((DATA / "seeds").glob("*.yaml"))
MANIFESTS = sorted(path for path in (DATA / "manifests").glob("*.yaml") if path.name != "list.yaml")
JOBFILES = sorted((DATA / "jobfiles").glob("*.yaml"))
EVERY = [*SEEDS, *MANIFESTS, *JOBFILES]
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def document(path: Path) -> formats.Document:
    (only,) = formats.read(path.read_bytes(), path.name)
    return only


def load(name: str) -> Job:
    return formats.load(document(DATA / name))


def again(job: Job, version: formats.Version) -> Job:
    """The job after writing it as text and reading it back."""
    (document,) = formats.read(formats.dump(job, version).text())
    return formats.load(document)


def decide(job: Job) -> Decision:
    return planner.decide(job, Observed(), planner.Site(), NOW)


def created(decision: Decision) -> list[str]:
    bodies: list[dict[str, Any]] = [getattr(action, "manifest", {}) for action in decision.actions]
    return [f"{body['kind']}/{body['metadata']['name']}" for body in bodies if body]
