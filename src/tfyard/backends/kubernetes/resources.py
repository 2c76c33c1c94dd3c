"""Which kinds of objects the operator watches and writes, and how each is decoded."""

from collections.abc import Iterable

from msgspec import Struct

from tfyard.kube import Kind, Resource, requests
from tfyard.model import Job
from tfyard.model.names import POD_GROUP

from .views import Child, GroupView

TFJOBS = requests.TFJOBS
OLD_TFJOBS = requests.OLD_TFJOBS

CHILDREN = {
    "Service": requests.SERVICES,
    "ConfigMap": requests.CONFIG_MAPS,
    "Deployment": requests.DEPLOYMENTS,
}
"""What a job has beside its pods, by kind. `install/permissions.py` has the permissions on them."""

_GROUPS: Kind[Child] = Kind(GroupView)
_OTHERS = Kind(Child)


def child_kind(kind: str) -> Kind[Child]:
    """How a child is decoded: of a PodGroup more is read than that it exists."""
    return _GROUPS if kind == POD_GROUP else _OTHERS


class Resources(Struct, frozen=True):
    jobs: dict[str, Resource]
    """By API group."""
    children: dict[str, Resource]
    """By kind; with PodGroups if jobs get some."""

    @classmethod
    def of(cls, jobs: Iterable[Resource], pod_groups: Resource | None = None) -> "Resources":
        groups = {POD_GROUP: pod_groups} if pod_groups else {}
        return cls({resource.group: resource for resource in jobs}, {**CHILDREN, **groups})

    def of_job(self, job: Job) -> Resource:
        return self.jobs[job.api_version.partition("/")[0]]

    def of_kind(self, kind: str) -> Resource:
        return requests.PODS if kind == "Pod" else self.children[kind]
