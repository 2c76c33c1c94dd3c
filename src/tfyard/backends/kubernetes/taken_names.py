"""Jobs that cannot create an object because another one has its name: they are woken when it is gone."""

from tfyard.views.pods import ObjectMeta

Name = tuple[str, str, str]
"""(kind, namespace, name)"""


class TakenNames:
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
