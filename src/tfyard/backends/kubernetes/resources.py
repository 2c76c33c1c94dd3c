"""The kinds of objects that the operator watches and writes, and how each is decoded."""

from collections.abc import Iterable

from msgspec import Struct

from tfyard.kube import Kind, Resource, requests
from tfyard.model import Job
from tfyard.model.names import POD_GROUP
from tfyard.views.pods import PodView

from .unreadable import UnreadableChild, UnreadableJob, UnreadablePod, salvage
from .views import Child, GroupView, ServiceView, StoredJob, slim

CHILDREN = {
    "Service": requests.SERVICES,
    "ConfigMap": requests.CONFIG_MAPS,
    "Deployment": requests.DEPLOYMENTS,
}
"""Kinds of objects that a job has beside its pods. `install/permissions.py` has the permissions on them."""

PODS: Kind[PodView] = Kind(PodView, slim, salvage(UnreadablePod))
JOBS: Kind[StoredJob] = Kind(StoredJob, StoredJob.keep, salvage(UnreadableJob))
_WITH_SPEC: dict[str, Kind[Child]] = {
    POD_GROUP: Kind(GroupView, slim, salvage(UnreadableChild)),
    "Service": Kind(ServiceView, slim, salvage(UnreadableChild)),
}
_OTHERS: Kind[Child] = Kind(Child, slim, salvage(UnreadableChild))


def child_kind(kind: str) -> Kind[Child]:
    """How a child is decoded: PodGroups and Services with their specs, others only with metadata."""
    return _WITH_SPEC.get(kind, _OTHERS)


class Resources(Struct, frozen=True):
    jobs: dict[str, Resource]
    """Resources of jobs by API group."""
    children: dict[str, Resource]
    """Resources of children by kind; with PodGroups if jobs get some."""

    @classmethod
    def of(cls, jobs: Iterable[Resource], pod_groups: Resource | None = None) -> "Resources":
        groups = {POD_GROUP: pod_groups} if pod_groups else {}
        return cls({resource.group: resource for resource in jobs}, {**CHILDREN, **groups})

    def of_job(self, job: Job) -> Resource:
        return self.jobs[job.api_version.partition("/")[0]]

    def of_kind(self, kind: str) -> Resource:
        return requests.PODS if kind == "Pod" else self.children[kind]
