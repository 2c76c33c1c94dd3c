"""A TFJob and a TfJob of the same name in one namespace: their pods and Services would have the same names, so
only one of them gets any."""

from tfyard.kube.requests import OLD_TFJOBS, TFJOBS

from .cache import Cache, JobKey

GROUPS = (TFJOBS.group, OLD_TFJOBS.group)


def namesakes(cache: Cache, key: JobKey) -> list[JobKey]:
    others = (key._replace(group=group) for group in GROUPS if group != key.group)
    return [other for other in others if other in cache.jobs]


def holder_of_names(cache: Cache, key: JobKey) -> JobKey | None:
    """The other job that has the names: the one that has objects already, else the older one. None if this job has
    them itself."""
    if _has_objects(cache, key):
        return None
    others = namesakes(cache, key)
    return next((each for each in others if _has_objects(cache, each) or _is_older(cache, each, key)), None)


def _has_objects(cache: Cache, key: JobKey) -> bool:
    owner = cache.jobs[key].as_owner
    return bool(cache.pods.of(owner) or cache.children.of(owner))


def _is_older(cache: Cache, key: JobKey, than: JobKey) -> bool:
    """Whether one job is older. The server's times have whole seconds, so the group decides between equal ones."""
    mine, its = (cache.jobs[each].metadata.creation_timestamp for each in (key, than))
    return key.group < than.group if mine is None or its is None or mine == its else mine < its
