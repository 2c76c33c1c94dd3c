"""A new job of the spec of another one: its name, and its manifest without what the server and others added."""

from collections.abc import Container, Sequence
from itertools import count

from msgspec import Struct

from tfyard.formats.tfjob import edits
from tfyard.job_input import options
from tfyard.model import Manifest
from tfyard.model.names import RERUN_OF

NOT_COPIED = ("kubectl.kubernetes.io/", "kueue.x-k8s.io/", "meta.helm.sh/", "argocd.argoproj.io/")
"""Annotations that tell how the old object was made, or where it is in a queue."""


class Changes(Struct, frozen=True, kw_only=True):
    """In what the new job shall differ."""

    name: str = ""
    """Empty: the old one's with a number."""
    counts: dict[str, int] = {}
    """Role, such as Worker -> its tasks."""
    variables: dict[str, str] = {}


def read(sets: Sequence[str], env: Sequence[str], name: str | None) -> Changes:
    """The options as given: ROLE=N, K=V."""
    asked = options.JobOptions(sets=tuple(sets), env=tuple(env), name=name)
    options.check(asked)
    counts = dict(options.replicas(text) for text in asked.sets)
    return Changes(name=name or "", counts=counts, variables=asked.variables)


def next_name(manifest: Manifest, taken: Container[str]) -> str:
    """`mnist-2`, `mnist-3` and so on, also after a rerun of `mnist-2`; but `resnet-50-2` after `resnet-50`."""
    first = _first(manifest)
    return next(name for number in count(2) if (name := f"{first}-{number}") not in taken)


def manifest(old: Manifest, name: str, changes: Changes) -> Manifest:
    """It runs at once, also if the old one was stopped. Its owners are not its own."""
    wanted = [
        *edits.resumed(old),
        *edits.scaled(old, changes.counts),
        *edits.with_variables(old, changes.variables),
    ]
    return {
        "apiVersion": old["apiVersion"],
        "kind": old["kind"],
        "metadata": {"name": name, **_metadata(old)},
        "spec": edits.edited(old, wanted)["spec"],
    }


def _metadata(old: Manifest) -> Manifest:
    labels, annotations = old["metadata"].get("labels") or {}, old["metadata"].get("annotations") or {}
    kept = {key: value for key, value in annotations.items() if not key.startswith(NOT_COPIED)}
    return {"labels": labels, "annotations": {**kept, RERUN_OF: _first(old)}}


def _first(manifest: Manifest) -> str:
    """The job that the first rerun was of."""
    metadata = manifest["metadata"]
    return str((metadata.get("annotations") or {}).get(RERUN_OF) or metadata["name"])
