"""What the cache is made of: objects by the job that owns them, the versions of them that watches have reported,
and the names that jobs wait for."""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from tfyard.views.metadata import ObjectMeta, version_number


class ObjectVersion(Protocol):
    """One version of an object."""

    @property
    def uid(self) -> str: ...
    @property
    def version(self) -> str: ...


K = TypeVar("K")
V = TypeVar("V", bound=ObjectVersion)


class Owned(Generic[K, V]):
    """Objects by the job that owns them, and by name or (kind, name)."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[K, V]] = {}
        self._owner_of: dict[str, str] = {}
        """Uid of an object -> its owner."""
        self._shared: dict[str, str] = {}
        """One string for each owner: its objects would each bring their own."""

    def __len__(self) -> int:
        return len(self._owners)

    def of(self, owner: str) -> dict[K, V]:
        return self._owners.get(owner, {})

    def put(self, owner: str, key: K, value: V) -> None:
        owner = self._shared.setdefault(owner, owner)
        known = self._owners.setdefault(owner, {})
        if key in known:
            self._owner_of.pop(known[key].uid, None)
        known[key] = value
        self._owner_of[value.uid] = owner

    def remove(self, owner: str, key: K) -> bool:
        """Removes an object; returns whether it was cached."""
        known = self._owners.get(owner, {})
        value = known.pop(key, None)
        if not known:
            self._owners.pop(owner, None)
            self._shared.pop(owner, None)
        if value is not None:
            self._owner_of.pop(value.uid, None)
        return value is not None

    def disown(self, meta: ObjectMeta, key: K) -> str:
        """The owner that an object had, if its ownerReferences were edited."""
        former = self._owner_of.get(meta.uid, "")
        known = self.of(former).get(key)
        if former == meta.owner or known is None or is_older(meta.resource_version, known.version):
            return ""
        self.remove(former, key)
        return former

    def of_others(self, is_job: Callable[[str], bool]) -> Iterator[tuple[K, V]]:
        """Objects of owners that are not, or no longer, jobs."""
        return (item for owner, known in self._owners.items() if not is_job(owner) for item in known.items())

    def items(self) -> list[tuple[str, K, V]]:
        return [(owner, key, value) for owner, known in self._owners.items() for key, value in known.items()]


class Versions:
    """The last version that the watch has reported, for each kind in each namespace."""

    def __init__(self) -> None:
        self._watched: dict[tuple[str, str], int] = {}

    def advance(self, kind: str, meta: ObjectMeta) -> None:
        """Notes that the watch has reported this version of an object."""
        key, version = (kind, meta.namespace), meta.resource_version
        self._watched[key] = max(self._watched.get(key, 0), version_number(version))

    def is_past(self, kind: str, meta: ObjectMeta) -> bool:
        """Whether the watch has already reported this version or a later one."""
        watched = self._watched.get((kind, meta.namespace), 0)
        return 0 < version_number(meta.resource_version) <= watched


Name = tuple[str, str, str]
"""(kind, namespace, name)"""


class TakenNames:
    """Jobs that cannot create an object because another one has its name: they are woken when it is gone."""

    def __init__(self) -> None:
        self._names: dict[str, set[Name]] = {}
        """A job as owner -> the names that it waits for."""

    def __len__(self) -> int:
        """Number of jobs that wait."""
        return len(self._names)

    def add(self, job: str, name: Name) -> None:
        self._names.setdefault(job, set()).add(name)

    def release(self, kind: str, meta: ObjectMeta) -> list[str]:
        """Notes that an object is gone; returns the jobs that now wait for no name: a job that waits for a
        thousand pods of its predecessor should not try a thousand times."""
        name = (kind, meta.namespace, meta.name)
        waiting = [job for job, names in self._names.items() if name in names]
        for job in waiting:
            self._names[job].discard(name)
        return [job for job in waiting if not self._names[job]]

    def waiting_for(self, kind: str, namespace: str) -> list[str]:
        """The jobs that wait for any name of a kind in a namespace, or in all (empty)."""

        def is_such(name: Name) -> bool:
            return name[0] == kind and namespace in ("", name[1])

        return [job for job, names in self._names.items() if any(map(is_such, names))]

    def discard(self, job: str, name: Name) -> None:
        """Removes a name that turned out to be the job's own, or free."""
        self._names.get(job, set()).discard(name)

    def forget(self, job: str) -> None:
        """Forgets the names of a job that is deleted, or tries again."""
        self._names.pop(job, None)


def is_older(version: str, than: str) -> bool:
    """Versions of one resource compare as numbers."""
    return 0 < version_number(version) < version_number(than)
