"""Finds the cluster's gang scheduler, which starts all pods of a job or none."""

import logging

from tfyard import kube, planner
from tfyard.errors import TfyardError
from tfyard.model import GangScheduler
from tfyard.planner.gang import API_VERSIONS, SCHEDULERS

from .crds import is_served

log = logging.getLogger(__name__)

_MISSING = {
    "core": "turn on the feature gates GenericWorkload and GangScheduling of Kubernetes 1.36",
    "volcano": "install Volcano",
    "scheduler-plugins": "install scheduler-plugins",
}


class NotServed(TfyardError):
    """The cluster does not have the requested gang scheduler."""


async def find(client: kube.Client, chosen: str, name: str = "") -> planner.Gang | None:
    """The gang scheduler by `--gang-scheduler` and `--gang-scheduler-name`. The latter alone is upstream's flag
    with upstream's meaning: volcano, or the name under which scheduler-plugins is installed."""
    if chosen == "none":
        if not name:
            return None
        chosen = "volcano" if name.lower() == "volcano" else "scheduler-plugins"
    if chosen == "auto":
        return await _best(client, name)
    by = next(each for each in API_VERSIONS if each == chosen)
    if not await is_served(client, groups_of(by)):
        missing = f"this cluster does not serve podgroups of {API_VERSIONS[by]}"
        raise NotServed(f"gang scheduler {by}: {missing}; {_MISSING[by]}, or choose auto or none")
    return _found(by, name, every=True)


def groups_of(by: GangScheduler) -> kube.Resource:
    """The PodGroups of a gang scheduler."""
    group, _, version = API_VERSIONS[by].partition("/")
    return kube.Resource(group, version, "podgroups")


async def _best(client: kube.Client, name: str) -> planner.Gang | None:
    for by in API_VERSIONS:
        if await is_served(client, groups_of(by)):
            return _found(by, name, every=False)
    log.info("gang scheduling: not available in this cluster; pods start one by one")
    return None


def _found(by: GangScheduler, name: str, *, every: bool) -> planner.Gang:
    jobs = "every job" if every else "jobs with a schedulingPolicy"
    log.info("gang scheduling: by %s (%s), for %s", by, API_VERSIONS[by], jobs)
    scheduler = name if name and by == "scheduler-plugins" else SCHEDULERS[by]
    return planner.Gang(by=by, scheduler=scheduler, every=every)
