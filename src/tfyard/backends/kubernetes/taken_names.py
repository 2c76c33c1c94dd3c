"""Which jobs cannot create an object because another one has its name: they are woken when it is gone."""

from .views import Meta

Name = tuple[str, str, str]
"""(kind, namespace, name)"""


class TakenNames:
    def __init__(self) -> None:
        self._names: dict[str, set[Name]] = {}
        """By the uid of the job that waits for them."""

    def __len__(self) -> int:
        """How many jobs wait."""
        return len(self._names)

    def add(self, uid: str, name: Name) -> None:
        self._names.setdefault(uid, set()).add(name)

    def release(self, kind: str, meta: Meta) -> list[str]:
        """The object is gone. The uids of the jobs that wait for nothing else: a job that waits for a thousand
        pods of its predecessor should not try a thousand times."""
        name = (kind, meta.namespace, meta.name)
        waiting = [uid for uid, names in self._names.items() if name in names]
        for uid in waiting:
            self._names[uid].discard(name)
        return [uid for uid in waiting if not self._names[uid]]

    def waiting_for(self, kind: str, namespace: str) -> list[str]:
        """The uids of the jobs that wait for any name of a kind in a namespace, or in all (empty)."""

        def is_such(name: Name) -> bool:
            return name[0] == kind and namespace in ("", name[1])

        return [uid for uid, names in self._names.items() if any(map(is_such, names))]

    def discard(self, uid: str, name: Name) -> None:
        """It turned out to be the job's own, or free."""
        self._names.get(uid, set()).discard(name)

    def forget(self, uid: str) -> None:
        """The job is deleted, or tries again."""
        self._names.pop(uid, None)
