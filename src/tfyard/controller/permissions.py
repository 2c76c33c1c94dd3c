"""What an operator must be allowed to do, asked of the server before it is needed.

A right that is missing shows itself late otherwise: a watch that never begins, a job that never starts. The
answer to each question is the server's, so every kind of authorization is understood.
"""

import asyncio
import logging
from collections.abc import Iterable, Iterator

from msgspec import Struct

from tfyard import kube
from tfyard.kube import Resource, requests

from .lease import LEASE_NAME

log = logging.getLogger(__name__)

REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)
AT_ONCE = 16
ASK_AGAIN = 5.0
"""Seconds after which missing rights are asked for again: somebody may be granting them just now."""

Verbs = dict[str, tuple[str, ...]]
"""By subresource."""

OF_JOBS: Verbs = {"": ("list", "watch", "delete"), "status": ("update",)}
OF_CHILDREN: Verbs = {"": ("get", "list", "watch", "create", "delete")}
OF_AMENDED: Verbs = {"": ("patch",)}
OF_EVENTS: Verbs = {"": ("create",)}
OF_LEASES: Verbs = {"": ("get", "create", "update")}


class Right(Struct, frozen=True, order=True):
    """Verbs on a resource (or a subresource of it) in a namespace; without one, in all of them."""

    namespace: str
    group: str
    resource: str
    verbs: tuple[str, ...]
    subresource: str = ""
    name: str = ""

    def __str__(self) -> str:
        what = ".".join(filter(None, (self.resource, self.group)))
        what = f"{what}/{self.subresource}" if self.subresource else what
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{', '.join(self.verbs)} {what} in {where}"


def needed(jobs: Iterable[Resource], children: Iterable[Resource], namespaces: Iterable[str]) -> list[Right]:
    """Of an operator that keeps these kinds of jobs, with these kinds of children, in these places."""
    verbs: list[tuple[Resource, Verbs]] = [*((job, OF_JOBS) for job in jobs)]
    verbs += [(child, OF_CHILDREN) for child in children]
    verbs += [(Resource("", "v1", "events"), OF_EVENTS)]
    return [right for place in namespaces for resource, of in verbs for right in _rights(resource, of, place)]


def to_amend(resources: Iterable[Resource], namespaces: Iterable[str]) -> list[Right]:
    """What is changed in place: pod groups of a job that is scaled, pods that a queue holds."""
    return [right for place in namespaces for each in resources for right in _rights(each, OF_AMENDED, place)]


def to_lead(namespace: str) -> list[Right]:
    return list(_rights(requests.LEASES, OF_LEASES, namespace, LEASE_NAME))


def _rights(resource: Resource, verbs: Verbs, place: str, name: str = "") -> Iterator[Right]:
    for subresource, of in verbs.items():
        yield Right(place, resource.group, resource.plural, of, subresource, name)


class Permissions:
    """What is missing of them; asked again until nothing is."""

    def __init__(self, client: kube.Client, rights: Iterable[Right]) -> None:
        self._client, self._rights = client, list(rights)
        self._seats = asyncio.Semaphore(AT_ONCE)
        self.missing: list[str] = []

    async def run(self) -> None:
        while True:
            try:
                self._tell(await self._ask())
            except kube.Refused as refusal:  # a cluster that does not answer this: the watches will tell
                log.info("cannot ask what is allowed: %s", refusal)
                return
            except kube.KubeError as problem:
                log.info("could not ask what is allowed: %s", problem)
            else:
                if not self.missing:
                    return
            await asyncio.sleep(ASK_AGAIN)

    def _tell(self, missing: list[str]) -> None:
        """Once, and again if it has changed: it is waited for, maybe for days."""
        before, self.missing = self.missing, missing
        if missing and missing != before:
            log.warning("is not allowed to %s; waits until it is", "; ".join(missing))
        elif before and not missing:
            log.info("is allowed now all that it needs")

    async def _ask(self) -> list[str]:
        lacking = await asyncio.gather(*(self._lacking(right) for right in self._rights))
        return [str(right) for right in lacking if right.verbs]

    async def _lacking(self, right: Right) -> Right:
        allowed = await asyncio.gather(*(self._may(right, verb) for verb in right.verbs))
        verbs = tuple(verb for verb, may in zip(right.verbs, allowed, strict=True) if not may)
        return Right(right.namespace, right.group, right.resource, verbs, right.subresource)

    async def _may(self, right: Right, verb: str) -> bool:
        asked = {
            "verb": verb,
            "namespace": right.namespace,
            "group": right.group,
            "resource": right.resource,
            "subresource": right.subresource,
            "name": "" if verb == "create" else right.name,  # it has none yet that a role could name
        }
        async with self._seats:
            review = {"spec": {"resourceAttributes": asked}}
            answer = await self._client.send(requests.create(REVIEWS.path(), review))
        return bool(answer["status"]["allowed"])
