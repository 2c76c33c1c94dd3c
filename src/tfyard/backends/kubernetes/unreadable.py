"""Objects that cannot be read. Whatever is raised while one object is decoded or judged concerns that object only:
it is logged and counted here, and the work on all others goes on.

What is left of such an object is its metadata, so its job knows that it exists: a pod in an unknown state is
neither replaced nor counted.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.json import Decoder

from tfyard.kube import Undecodable
from tfyard.kube.decoding import cut, decode, outline
from tfyard.model import Obstacle, shortened
from tfyard.views.metadata import ObjectMeta
from tfyard.views.pods import PodView

from .views import Child, StoredJob

log = logging.getLogger(__name__)

REASON = "Unreadable"
METADATA_DEPTH = 4
"""Levels of `metadata.ownerReferences[0]`, the deepest part of the metadata that is read."""


class InNamespace(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


class UnreadablePod(PodView, frozen=True):
    problem: str = ""


class UnreadableChild(Child, frozen=True):
    problem: str = ""


class UnreadableJob(StoredJob, frozen=True):
    problem: str = ""


V = TypeVar("V", UnreadablePod, UnreadableChild, UnreadableJob)


class _SomeObject(Struct, frozen=True):
    metadata: ObjectMeta


_OBJECTS = Decoder(_SomeObject)


def salvage(view: type[V]) -> Callable[[bytes, str], V | None]:
    """Returns what makes a view of the bytes of an object that cannot be decoded; None if it has not even a
    name."""

    def salvaged(data: bytes, problem: str) -> V | None:
        with suppress(Undecodable):
            meta = _metadata(data)
            return view(metadata=meta, problem=problem) if meta.name else None
        return None

    return salvaged


def _metadata(data: bytes) -> ObjectMeta:
    """The metadata; only the name, and so no owner, if some of the rest cannot be decoded."""
    try:
        return decode(_OBJECTS, cut(data, METADATA_DEPTH)).metadata
    except Undecodable:
        known = outline(data).metadata
        return ObjectMeta(known.name, known.namespace, resource_version=known.resource_version)


def problem_of(view: object) -> str:
    """Why an object could not be decoded; empty: it was."""
    return view.problem if isinstance(view, UnreadablePod | UnreadableChild | UnreadableJob) else ""


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def obstacle(kind: str, name: str, problem: str) -> Obstacle:
    return Obstacle(REASON, f"{kind.lower()} {name} cannot be read: {problem}")


class UnreadableObjects:
    """The objects that cannot be read or judged at present, each with the reason."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, str], str] = {}
        """(kind, namespace, name) -> problem."""

    def __len__(self) -> int:
        return len(self._problems)

    def note(self, kind: str, meta: InNamespace, problem: str) -> None:
        """Notes why an object cannot be read (empty: it can), and logs that, but not at every event."""
        if self.is_news(kind, meta, problem):
            text = "%s %s/%s cannot be read: %s"
            log.warning(text, kind, meta.namespace, meta.name, shortened(problem))

    def is_news(self, kind: str, meta: InNamespace, problem: str) -> bool:
        """Notes why an object cannot be read; returns whether the problem is new, and so must be logged."""
        key, problem = (kind, meta.namespace, meta.name), shortened(problem)
        if not problem:
            self._problems.pop(key, None)
            return False
        before, self._problems[key] = self._problems.get(key), problem
        return problem != before

    def keep(self, kind: str, namespace: str, items: Sequence[PodView | Child | StoredJob]) -> None:
        """Drops the objects of a kind (in a namespace, or in all: empty) that a list no longer has."""
        if self._problems:
            listed = {(kind, each.metadata.namespace, each.metadata.name) for each in items}
            for key in list(self._problems):
                if key[0] == kind and namespace in ("", key[1]) and key not in listed:
                    del self._problems[key]
