"""A model of an API server on which others undo what the operator writes: policies, clients, kubelets.

It stores objects, and reports them into the operator's cache as watches do. Its time is set by the test."""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.resources import child_kind
from tfyard.kube import Kind, Request
from tfyard.kube.decoding import decode
from tfyard.kube.errors import ErrorStatus, KubeError, from_status
from tfyard.model import Manifest, Status
from tfyard.model.names import CONTROLLER, OPERATOR_NAME
from tfyard.views.pods import PodView

PODS = Kind(PodView)
KINDS = {"pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "deployments": "Deployment"}
Key = tuple[str, str]
"""(kind, name)"""
Habit = Callable[["HostileServer", Key], None]
"""What another party does to an object that was just written."""


class HostileServer:
    def __init__(self, cache: Cache) -> None:
        self.cache, self.seconds, self.version = cache, 0.0, 0
        self.objects: dict[Key, Manifest] = {}
        self.admission: list[Habit] = []
        """What changes a new object before it is stored and answered."""
        self.others: list[Habit] = []
        """What others do to each new or changed object, before the next pass."""
        self.writes: Counter[tuple[str, Key]] = Counter()
        self.statuses: list[Status] = []
        self._touched: list[Key] = []

    # --- as a client sees it

    def now(self) -> datetime:
        return datetime(2026, 3, 4, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def send(self, request: Request, into: "msgspec.json.Decoder[Any]") -> Any:
        *_, first, last = request.path.partition("?")[0].split("/")
        key = (KINDS[last], "") if last in KINDS else (KINDS[first], last)
        body: Manifest = msgspec.json.decode(request.body or b"{}")
        answer = getattr(self, request.method.lower())(key, body)
        return decode(into, msgspec.json.encode(answer))

    def get(self, key: Key, _body: Manifest) -> Manifest:
        if key not in self.objects:
            raise refusal(404, "NotFound")
        return self.objects[key]

    def post(self, key: Key, body: Manifest) -> Manifest:
        key = (key[0], body["metadata"]["name"])
        if key in self.objects:
            raise refusal(409, "AlreadyExists")
        self.writes["create", key] += 1
        meta = {**body["metadata"], "uid": f"uid-{self.version}", "creationTimestamp": stamp(self.now())}
        self.objects[key] = {**body, "metadata": meta}
        for habit in self.admission:
            habit(self, key)
        return self.touch(key)

    def patch(self, key: Key, body: Manifest) -> Manifest:
        self.writes["patch", key] += 1
        self.objects[key] = merge(self.get(key, body), body)
        return self.touch(key)

    def delete(self, key: Key, options: Manifest) -> Manifest:
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and self.get(key, options)["metadata"]["uid"] != uid:
            raise refusal(409, "Conflict")
        self.writes["delete", key] += 1
        self.remove(key)
        return {}

    # --- as others act on it

    def change(self, key: Key, patch: Manifest) -> None:
        self.objects[key] = merge(self.objects[key], patch)
        self.touch(key)

    def remove(self, key: Key) -> None:
        if key in self.objects:
            self.version += 1
            gone = self.objects.pop(key)
            self.report(key[0], gone, is_gone=True)

    def touch(self, key: Key) -> Manifest:
        self.version += 1
        self.objects[key] = merge(
            self.objects[key], {"metadata": {"resourceVersion": str(self.version), "namespace": "lab"}}
        )
        self._touched.append(key)
        return self.objects[key]

    def pass_on(self) -> None:
        """Others react to what was written, and the watches report what there is now."""
        touched, self._touched = self._touched, []
        for key in touched:
            for habit in self.others:
                if key in self.objects:
                    habit(self, key)
        self._touched = []
        for (kind, _), item in self.objects.items():
            self.report(kind, item, is_gone=item["metadata"]["labels"].get(OPERATOR_NAME) != CONTROLLER)

    def report(self, kind: str, item: Manifest, *, is_gone: bool) -> None:
        data = msgspec.json.encode(
            {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        )
        if kind == "Pod":
            pod = decode(PODS.one, data)
            self.cache.drop_pod(pod) if is_gone else self.cache.pods.put(pod)
        else:
            child = decode(child_kind(kind).one, data)
            self.cache.drop_child(kind, child) if is_gone else self.cache.children.put(kind, child)


def refusal(code: int, reason: str, retry_after: float | None = None, message: str = "") -> KubeError:
    return from_status(ErrorStatus(code=code, reason=reason, message=message), retry_after)


def stamp(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(old: Any, new: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(new, dict):
        return new
    kept = dict(old) if isinstance(old, dict) else {}
    merged = {**kept, **{name: merge(kept.get(name), value) for name, value in new.items()}}
    return {name: value for name, value in merged.items() if value is not None}
