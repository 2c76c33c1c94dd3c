"""The manifests and job files under tests/data, as documents, and what tests do with them."""

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
    (found,) = formats.read(path.read_bytes(), path.name)
    return found


def load(name: str) -> Job:
    return formats.load(document(DATA / name))


def again(job: Job, version: formats.Version) -> Job:
    """What a job becomes when it is written and read back, text and all."""
    (found,) = formats.read(formats.dump(job, version).text())
    return formats.load(found)


def decide(job: Job) -> Decision:
    return planner.decide(job, Observed(), planner.Site(), NOW)


def created(decision: Decision) -> list[str]:
    bodies: list[dict[str, Any]] = [getattr(action, "manifest", {}) for action in decision.actions]
    return [f"{body['kind']}/{body['metadata']['name']}" for body in bodies if body]
