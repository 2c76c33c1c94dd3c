"""What a job has in its cluster: pods, which go with it, claims, which outlive it, and its place in a queue."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from msgspec import Struct

from tfyard import formats
from tfyard.kube import Forbidden, NotFound, Request, requests
from tfyard.kube.requests import FIELD_MANAGER
from tfyard.kube.sync import SyncClient
from tfyard.model import DEFAULT_GRACE, Job
from tfyard.model.names import QUEUE_NAME
from tfyard.remote.reading import views
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.views.pods import PodView

JOB_UID = "kueue.x-k8s.io/job-uid"
MOST_NAMES = 4
"""Names that are shown; more are only counted."""


class Belongings:
    def __init__(self, client: SyncClient, tfjob: StoredTFJob) -> None:
        self._client, self._tfjob = client, tfjob
        self.unseen: tuple[str, ...] = ()
        """Notes about what the user may not list, once it was asked for. Actions may be allowed all the same."""

    @cached_property
    def job(self) -> Job | None:
        """Job of the manifest; None: it cannot be read."""
        return formats.check(self._tfjob.manifest).job

    def pods(self) -> Sequence[PodView]:
        try:
            return views.pods(self._client, self._tfjob)
        except Forbidden as problem:
            self.unseen = (f"its pods could not be looked at: {problem}",)
            return []

    def running(self) -> list[PodView]:
        """Pods that have not ended and are not being deleted."""
        return [pod for pod in self.pods() if not pod.is_over and pod.metadata.deletion_timestamp is None]

    def leaving(self, pods: Sequence[PodView]) -> tuple[str, ...]:
        """Text about pods that go, with their longest grace period."""
        specs = [role.template.get("spec") or {} for role in self.job.roles] if self.job else []
        asked = [spec.get("terminationGracePeriodSeconds") for spec in specs]
        longest = max((DEFAULT_GRACE if each is None else int(each) for each in asked), default=DEFAULT_GRACE)
        names = [pod.task or pod.name for pod in pods]
        return tuple(f"{each}, after at most {longest} s of grace" for each in counted("pod", names))

    def claims(self) -> list[str]:
        """Names of the claims that the job mounts."""
        specs = [role.template.get("spec") or {} for role in self.job.roles] if self.job else []
        volumes = (volume for spec in specs for volume in spec.get("volumes") or [])
        names = ((volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes)
        return [str(name) for name in dict.fromkeys(names) if name]

    def data(self, claims: Iterable[str] | None = None) -> list[str]:
        """Text about the claims of the job, or about these."""
        return [f"the claim {name} with its data" for name in (self.claims() if claims is None else claims)]

    def owned_claims(self) -> list[str]:
        """Claims that the job owns: Kubernetes deletes them with it."""
        return [name for name in self.claims() if self._tfjob.uid in self._owners(name)]

    def _owners(self, claim: str) -> set[str]:
        """Uids of the claim's owners; none if it does not exist, or may not be read."""
        try:
            manifest = self._client.send(requests.get(requests.CLAIMS.path(self._tfjob.namespace, claim)))
        except (NotFound, Forbidden):
            return set()
        return {str(each.get("uid")) for each in manifest["metadata"].get("ownerReferences") or []}


def counted(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    """`3 pods (worker-0, worker-1, worker-2)`; nothing, if there are none."""
    if not names:
        return ()
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return (f"{len(names)} {kind}{'s'[: len(names) != 1]} ({shown})",)


# --- Kueue


class KueueWorkload(Struct, frozen=True):
    path: str
    is_active: bool

    def activation(self, *, active: bool) -> Request:
        """Request as of `kueuectl stop workload`: a job that is only suspended is resumed by Kueue at once."""
        return requests.patch(self.path, {"spec": {"active": active}}, query={"fieldManager": FIELD_MANAGER})


class KueueQueue(Struct, frozen=True):
    """Queue of Kueue, which suspends and resumes a job by its Workload. Empty: the job has none."""

    name: str = ""
    workload: KueueWorkload | None = None

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
        """Note that the job names a queue, and that nothing of Kueue is known."""
        if not self.name or self.workload:
            return ()
        return (f"it has the queue {self.name}: if Kueue manages TFJobs here, Kueue may change this again",)


def queue_of(client: SyncClient, tfjob: StoredTFJob) -> KueueQueue:
    name = str(tfjob.labels.get(QUEUE_NAME) or "")
    if not name:
        return KueueQueue()
    of = requests.selecting(labels={JOB_UID: tfjob.uid})
    try:
        listed = client.send(requests.get(requests.WORKLOADS.path(tfjob.namespace), of))["items"]
    except (NotFound, Forbidden):  # no Kueue, or the user may not list its objects
        return KueueQueue(name)
    if not listed:
        return KueueQueue(name)
    path = requests.WORKLOADS.path(tfjob.namespace, listed[0]["metadata"]["name"])
    is_active = (listed[0].get("spec") or {}).get("active") is not False
    return KueueQueue(name, KueueWorkload(path, is_active))
