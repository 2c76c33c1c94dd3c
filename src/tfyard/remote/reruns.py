"""A new job of the spec of another one: its name, and its manifest without what the server and others added."""

from collections.abc import Container, Sequence
from itertools import count

from msgspec import Struct

from tfyard.formats.tfjob import edits
from tfyard.job_input import options
from tfyard.model import Manifest
from tfyard.model.names import MLFLOW_RUN, RERUN_OF

NOT_COPIED = ("kubectl.kubernetes.io/", "kueue.x-k8s.io/", "meta.helm.sh/", "argocd.argoproj.io/", MLFLOW_RUN)
"""Prefixes of annotations that tell how the old object was made, or where it is in a queue; and where it is
reported, which is a run of the old one."""


class RerunChanges(Struct, frozen=True, kw_only=True):
    """Differences of the new job."""

    name: str = ""
    """Name of the new job; empty: that of the old one with a number."""
    counts: dict[str, int] = {}
    """Role, such as Worker -> its number of tasks."""
    variables: dict[str, str] = {}
    digests: dict[str, str] = {}
    """Role -> the image to run, with its digest."""


def read(sets: Sequence[str], env: Sequence[str], name: str | None) -> RerunChanges:
    """Reads the options ROLE=N and K=V."""
    asked = options.JobOptions(sets=tuple(sets), env=tuple(env), name=name)
    options.check(asked)
    counts = dict(options.replicas(text) for text in asked.sets)
    return RerunChanges(name=name or "", counts=counts, variables=asked.variables)


def next_name(manifest: Manifest, taken: Container[str]) -> str:
    """`mnist-2`, `mnist-3` and so on, also after a rerun of `mnist-2`; but `resnet-50-2` after `resnet-50`."""
    first = first_name(manifest)
    return next(name for number in count(2) if (name := f"{first}-{number}") not in taken)


def manifest(old: Manifest, name: str, changes: RerunChanges) -> Manifest:
    """The new job, which runs at once, also if the old one was stopped. It has no owners."""
    changed = [
        *edits.resumed(old),
        *edits.scaled(old, changes.counts),
        *edits.with_variables(old, changes.variables),
        *edits.with_images(old, changes.digests),
    ]
    return {
        "apiVersion": old["apiVersion"],
        "kind": old["kind"],
        "metadata": {"name": name, **_metadata(old)},
        "spec": edits.edited(old, changed)["spec"],
    }


def _metadata(old: Manifest) -> Manifest:
    labels, annotations = old["metadata"].get("labels") or {}, old["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.startswith(NOT_COPIED)}
    return {"labels": labels, "annotations": {**kept, RERUN_OF: first_name(old)}}


def first_name(manifest: Manifest) -> str:
    """Name of the job that was rerun first."""
    metadata = manifest["metadata"]
    return str((metadata.get("annotations") or {}).get(RERUN_OF) or metadata["name"])
