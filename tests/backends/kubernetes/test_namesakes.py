"""Two jobs of one name: which of them has the names of the pods."""

from datetime import UTC, datetime

import pytest

from tfyard.backends.kubernetes.cache import Cache, JobKey
from tfyard.backends.kubernetes.namesakes import holder_of_names, namesakes
from tfyard.backends.kubernetes.views import Child, StoredJob
from tfyard.kube.requests import OLD_TFJOBS, TFJOBS
from tfyard.model.names import JOB_KINDS
from tfyard.views.metadata import ObjectMeta, OwnerReference

NEW, OLD = JobKey("kubeflow.org", "lab", "mnist"), JobKey("tensorflow.org", "lab", "mnist")


def cache(new: int, old: int) -> Cache:
    """A cache with both jobs, created at these seconds."""
    made = Cache()
    for resource, uid, second in ((TFJOBS, "new", new), (OLD_TFJOBS, "old", old)):
        when = datetime(2026, 3, 4, 5, 6, second, tzinfo=UTC)
        meta = ObjectMeta(
            name="mnist", namespace="lab", uid=uid, resource_version="1", creation_timestamp=when
        )
        kind = JOB_KINDS[resource.group]
        made.put_job(resource, StoredJob(metadata=meta, api_version=f"{resource.group}/v1", kind=kind))
    return made


@pytest.mark.parametrize(("new", "old", "first"), [(1, 2, NEW), (2, 1, OLD), (1, 1, NEW)])
def test_the_older_job_has_the_names_as_long_as_neither_has_objects(
    new: int, old: int, first: JobKey
) -> None:
    both = cache(new, old)
    second = OLD if first == NEW else NEW
    assert (holder_of_names(both, first), holder_of_names(both, second)) == (None, first)


def test_the_job_that_has_objects_has_the_names() -> None:
    both = cache(new=1, old=2)
    group = OLD.group
    owner = (OwnerReference("old", True, f"{group}/v1alpha1", JOB_KINDS[group], "mnist"),)
    service = ObjectMeta(name="mnist", namespace="lab", uid="s", resource_version="2", owner_references=owner)
    both.children.put("Service", Child(metadata=service))
    assert (holder_of_names(both, OLD), holder_of_names(both, NEW)) == (None, OLD)


def test_a_job_of_another_name_has_no_namesake() -> None:
    both = cache(1, 2)
    assert namesakes(both, NEW._replace(name="other")) == []
    assert namesakes(both, NEW) == [OLD]
