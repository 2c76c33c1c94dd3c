"""A job in a queue of Kueue: Kueue suspends and resumes it, by its own object, the Workload."""

from msgspec import Struct

from tfyard.kube import Forbidden, NotFound, Request, Resource, requests
from tfyard.kube.requests import FIELD_MANAGER
from tfyard.kube.sync import SyncClient
from tfyard.model.names import QUEUE_NAME

from .jobs import Found

WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads")
JOB_UID = "kueue.x-k8s.io/job-uid"


class Workload(Struct, frozen=True):
    path: str
    is_active: bool

    def activation(self, *, active: bool) -> Request:
        """As `kueuectl stop workload` does: a job that is only suspended is resumed by Kueue at once."""
        return requests.patch(self.path, {"spec": {"active": active}}, query={"fieldManager": FIELD_MANAGER})


class Queue(Struct, frozen=True):
    """Of a job without one, all of it is empty."""

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


def look(client: SyncClient, found: Found) -> Queue:
    name = str((found.manifest["metadata"].get("labels") or {}).get(QUEUE_NAME) or "")
    if not name:
        return Queue()
    of = requests.selecting(labels={JOB_UID: found.uid})
    try:
        listed = client.send(requests.get(WORKLOADS.path(found.namespace), of))["items"]
    except (NotFound, Forbidden):  # no Kueue, or not for us to see
        return Queue(name)
    if not listed:
        return Queue(name)
    path = WORKLOADS.path(found.namespace, listed[0]["metadata"]["name"])
    is_active = (listed[0].get("spec") or {}).get("active") is not False
    return Queue(name, Workload(path, is_active))
