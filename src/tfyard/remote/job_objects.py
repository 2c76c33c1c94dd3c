"""What a job has in its cluster: pods, which go with it, claims, which outlive it, and its place in a queue."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from tfyard import formats
from tfyard.kube import Forbidden, NotFound, Request, requests
from tfyard.kube.requests import FIELD_MANAGER
from tfyard.kube.sync import SyncClient
from tfyard.model import Job
from tfyard.model.names import QUEUE_NAME
from tfyard.overview.objects import Pod

from . import pod_starts, views
from .jobs import Found

JOB_UID = "kueue.x-k8s.io/job-uid"
GRACE = 30
"""Seconds, where a pod does not say otherwise."""
MOST_NAMES = 4
"""That are told, and not only counted."""


class Belongings:
    def __init__(self, client: SyncClient, found: Found) -> None:
        self._client, self._found = client, found
        self.unseen: tuple[str, ...] = ()
        """What we may not look at, after it was asked for. What may be done to the job is another question."""

    @cached_property
    def job(self) -> Job | None:
        """None: it cannot be read."""
        return formats.check(self._found.manifest).job

    def pods(self) -> list[Pod]:
        try:
            listed = views.pods(self._client, self._found)
        except Forbidden as problem:
            self.unseen = (f"its pods could not be looked at: {problem}",)
            return []
        return [pod for pod in listed if pod_starts.belongs(pod, self._found)]

    def running(self) -> list[Pod]:
        """Those that have not ended and are not asked to."""
        return [pod for pod in self.pods() if not pod.is_over and pod.metadata.deletion_timestamp is None]

    def leaving(self, pods: Sequence[Pod]) -> tuple[str, ...]:
        """In words."""
        specs = [role.template.get("spec") or {} for role in self.job.roles] if self.job else []
        asked = [spec.get("terminationGracePeriodSeconds") for spec in specs]
        longest = max((GRACE if each is None else int(each) for each in asked), default=GRACE)
        names = [pod.task or pod.name for pod in pods]
        return tuple(f"{each}, after at most {longest} s of grace" for each in counted("pod", names))

    def claims(self) -> list[str]:
        """By name."""
        specs = [role.template.get("spec") or {} for role in self.job.roles] if self.job else []
        volumes = (volume for spec in specs for volume in spec.get("volumes") or [])
        names = ((volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes)
        return [str(name) for name in dict.fromkeys(names) if name]

    def data(self, claims: Iterable[str] | None = None) -> list[str]:
        """In words: claims, or these of them."""
        return [f"the claim {name} with its data" for name in (self.claims() if claims is None else claims)]

    def owned_claims(self) -> list[str]:
        """Claims whose owner the job is: Kubernetes deletes them with it."""
        return [name for name in self.claims() if self._found.uid in self._owners(name)]

    def _owners(self, claim: str) -> set[str]:
        """By uid. Of a claim that is not there, or that we may not read, none is known."""
        try:
            found = self._client.send(requests.get(requests.CLAIMS.path(self._found.namespace, claim)))
        except (NotFound, Forbidden):
            return set()
        return {str(each.get("uid")) for each in found["metadata"].get("ownerReferences") or []}


def counted(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    """`3 pods (worker-0, worker-1, worker-2)`; nothing, if there are none."""
    if not names:
        return ()
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return (f"{len(names)} {kind}{'s'[: len(names) != 1]} ({shown})",)


# --- Kueue


class Workload(Struct, frozen=True):
    path: str
    is_active: bool

    def activation(self, *, active: bool) -> Request:
        """As `kueuectl stop workload` does: a job that is only suspended is resumed by Kueue at once."""
        return requests.patch(self.path, {"spec": {"active": active}}, query={"fieldManager": FIELD_MANAGER})


class Queue(Struct, frozen=True):
    """Of Kueue, which suspends and resumes a job by its own object, the Workload. All empty: the job has none."""

    name: str = ""
    workload: Workload | None = None

    @property
    def told_when_stopped(self) -> str:
        return f"Kueue suspends it, and gives its quota in the queue {self.name} back"

    @property
    def told_when_resumed(self) -> str:
        return f"it starts when Kueue admits it, from the end of the queue {self.name}"

    @property
    def waits(self) -> tuple[str, ...]:
        return (f"it waits in the queue {self.name} until Kueue admits it",) if self.workload_waits else ()

    @property
    def workload_waits(self) -> bool:
        return self.workload is not None and self.workload.is_active

    @property
    def unknown(self) -> tuple[str, ...]:
        """It names a queue, and nothing of Kueue is to be seen."""
        if not self.name or self.workload:
            return ()
        return (f"it has the queue {self.name}: if Kueue manages TFJobs here, Kueue may change this again",)


def queue_of(client: SyncClient, found: Found) -> Queue:
    name = str((found.manifest["metadata"].get("labels") or {}).get(QUEUE_NAME) or "")
    if not name:
        return Queue()
    of = requests.selecting(labels={JOB_UID: found.uid})
    try:
        listed = client.send(requests.get(requests.WORKLOADS.path(found.namespace), of))["items"]
    except (NotFound, Forbidden):  # no Kueue, or not for us to see
        return Queue(name)
    if not listed:
        return Queue(name)
    path = requests.WORKLOADS.path(found.namespace, listed[0]["metadata"]["name"])
    is_active = (listed[0].get("spec") or {}).get("active") is not False
    return Queue(name, Workload(path, is_active))
