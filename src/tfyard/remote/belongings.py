"""What a job has in its cluster: pods, which go with it, and claims, which outlive it."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from tfyard import formats
from tfyard.kube import Forbidden, NotFound, Resource, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Job
from tfyard.overview.objects import Pod

from . import pod_starts, views
from .jobs import Found

CLAIMS = Resource("", "v1", "persistentvolumeclaims")
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
            found = self._client.send(requests.get(CLAIMS.path(self._found.namespace, claim)))
        except (NotFound, Forbidden):
            return set()
        return {str(each.get("uid")) for each in found["metadata"].get("ownerReferences") or []}


def counted(kind: str, names: Sequence[str]) -> tuple[str, ...]:
    """`3 pods (worker-0, worker-1, worker-2)`; nothing, if there are none."""
    if not names:
        return ()
    shown = ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")
    return (f"{len(names)} {kind}{'s'[: len(names) != 1]} ({shown})",)
