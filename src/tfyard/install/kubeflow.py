"""Taking TFJobs over from Kubeflow's training-operator, and giving them back. Pure: objects in, objects out.

The old operator goes on with its other kinds (PyTorchJob, MPIJob, …), so it is told which ones, by its own flag.
What it had before is kept in annotations of ours.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tfyard.model import Manifest
from tfyard.model.names import REPLACED_ARGS, REPLACED_REPLICAS, REPLACED_WEBHOOKS

FLAG: Final = "--enable-scheme="
TFJOB: Final = "tfjob"
SCHEMES: Final = ("pytorchjob", "xgboostjob", "mpijob", "paddlejob", "jaxjob", "mxjob")
"""Kinds of all its releases; none of them knows them all."""


def is_kubeflow_operator(deployment: Manifest) -> bool:
    """By the names that all its releases have: of the Deployment, a label, the image."""
    metadata = deployment["metadata"]
    labels = metadata.get("labels") or {}
    images = [str(each.get("image", "")) for each in deployment["spec"]["template"]["spec"]["containers"]]
    return (
        labels.get("control-plane") == "kubeflow-training-operator"
        or metadata["name"] in ("training-operator", "tf-operator")
        or any("training-operator" in image or "tf_operator" in image for image in images)
    )


def reconciles_tfjobs(deployment: Manifest) -> bool:
    """It is not scaled to zero, and no flag leaves TFJobs out."""
    if deployment["spec"].get("replicas") == 0:
        return False
    schemes = _schemes(_container(deployment))
    return not schemes or TFJOB in schemes


def without_tfjobs(deployment: Manifest, plurals: Iterable[str]) -> Manifest:
    """The Deployment that leaves TFJobs alone. `plurals`: the kinds of kubeflow.org that the cluster has, such as
    `pytorchjobs`; if none of the operator's kinds is left, it is scaled to zero."""
    before = _schemes(_container(deployment)) or [each for each in SCHEMES if f"{each}s" in set(plurals)]
    kept = [each for each in before if each != TFJOB]
    if not kept:
        replicas = str(deployment["spec"].get("replicas", 1))
        return _annotated(_scaled(deployment, 0), REPLACED_REPLICAS, replicas)
    args = _container(deployment).get("args") or []
    others = [arg for arg in args if not str(arg).startswith(FLAG)]
    changed = _with_args(deployment, [*others, *(FLAG + each for each in kept)])
    return _annotated(changed, REPLACED_ARGS, msgspec.json.encode(args).decode())


def with_tfjobs(deployment: Manifest) -> Manifest | None:
    """The Deployment as it was before; None: it was not changed by us."""
    annotations = deployment["metadata"].get("annotations") or {}
    if REPLACED_REPLICAS in annotations:
        return _annotated(_scaled(deployment, int(annotations[REPLACED_REPLICAS])), REPLACED_REPLICAS, None)
    if REPLACED_ARGS in annotations:
        args = msgspec.json.decode(annotations[REPLACED_ARGS])
        return _annotated(_with_args(deployment, args), REPLACED_ARGS, None)
    return None


def blocks_tfjobs(configuration: Manifest) -> bool:
    """A webhook of training-operator that must answer before a TFJob is stored."""
    return any(_is_about_tfjobs(webhook) for webhook in configuration.get("webhooks") or [])


def without_webhooks(configuration: Manifest) -> Manifest:
    webhooks = configuration["webhooks"]
    removed = [each for each in webhooks if _is_about_tfjobs(each)]
    kept = [each for each in webhooks if not _is_about_tfjobs(each)]
    return _annotated(
        {**configuration, "webhooks": kept}, REPLACED_WEBHOOKS, msgspec.json.encode(removed).decode()
    )


def with_webhooks(configuration: Manifest) -> Manifest | None:
    annotations = configuration["metadata"].get("annotations") or {}
    if REPLACED_WEBHOOKS not in annotations:
        return None
    webhooks = [*(configuration.get("webhooks") or []), *msgspec.json.decode(annotations[REPLACED_WEBHOOKS])]
    return _annotated({**configuration, "webhooks": webhooks}, REPLACED_WEBHOOKS, None)


def _is_about_tfjobs(webhook: Manifest) -> bool:
    if not str(webhook.get("name", "")).endswith("training-operator.kubeflow.org"):
        return False
    return any("tfjobs" in (rule.get("resources") or []) for rule in webhook.get("rules") or [])


def _container(deployment: Manifest) -> Manifest:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    found: Manifest = next(
        (each for each in containers if each["name"] == "training-operator"), containers[0]
    )
    return found


def _schemes(container: Manifest) -> list[str]:
    args = [str(arg) for arg in [*(container.get("command") or []), *(container.get("args") or [])]]
    return [arg.removeprefix(FLAG).lower() for arg in args if arg.startswith(FLAG)]


def _with_args(deployment: Manifest, args: list[str]) -> Manifest:
    chosen = _container(deployment)
    pod = deployment["spec"]["template"]["spec"]
    containers = [{**each, "args": args} if each is chosen else each for each in pod["containers"]]
    template = {**deployment["spec"]["template"], "spec": {**pod, "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "template": template}}


def _scaled(deployment: Manifest, replicas: int) -> Manifest:
    return {**deployment, "spec": {**deployment["spec"], "replicas": replicas}}


def _annotated(found: Manifest, key: str, value: str | None) -> Manifest:
    annotations = {k: v for k, v in (found["metadata"].get("annotations") or {}).items() if k != key}
    if value is not None:
        annotations[key] = value
    return {**found, "metadata": {**found["metadata"], "annotations": annotations}}
