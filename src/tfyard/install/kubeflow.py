"""Taking TFJobs over from Kubeflow's training-operator, and giving them back. Pure: objects in, objects out.

training-operator continues to run its other kinds (PyTorchJob, MPIJob, …), which its own flag `--enable-scheme`
lists. tfyard keeps the original settings in annotations.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from tfyard.model import Manifest
from tfyard.model.names import REPLACED_ARGS, REPLACED_REPLICAS, REPLACED_WEBHOOKS

FLAG: Final = "--enable-scheme="
TFJOB: Final = "tfjob"
SCHEMES: Final = ("pytorchjob", "xgboostjob", "mpijob", "paddlejob", "jaxjob", "mxjob")
"""Kinds of all releases of training-operator; no release has all of them."""


STATE_PATH: Final = ".status.conditions[-1:].type"


def is_kubeflow_operator(deployment: Manifest) -> bool:
    """Recognizes every release of it by a label, the Deployment's name or the image."""
    metadata = deployment["metadata"]
    labels = metadata.get("labels") or {}
    containers = deployment["spec"]["template"]["spec"]["containers"]
    images = [str(container.get("image", "")) for container in containers]
    return (
        labels.get("control-plane") == "kubeflow-training-operator"
        or metadata["name"] in ("training-operator", "tf-operator")
        or any("training-operator" in image or "tf_operator" in image for image in images)
    )


def reconciles_tfjobs(deployment: Manifest) -> bool:
    """Whether training-operator is not scaled to zero, and its flags, if any, include TFJobs."""
    if deployment["spec"].get("replicas") == 0:
        return False
    schemes = _schemes(_container(deployment))
    return not schemes or TFJOB in schemes


def without_tfjobs(deployment: Manifest, plurals: Iterable[str]) -> Manifest:
    """The Deployment without TFJobs. `plurals` are the resources of kubeflow.org in the cluster, such as
    `pytorchjobs`. If no other kind is left, the Deployment is scaled to zero."""
    before = _schemes(_container(deployment)) or [name for name in SCHEMES if f"{name}s" in set(plurals)]
    kept = [name for name in before if name != TFJOB]
    if not kept:
        replicas = str(deployment["spec"].get("replicas", 1))
        return _annotated(_scaled(deployment, 0), REPLACED_REPLICAS, replicas)
    args = _container(deployment).get("args") or []
    others = [arg for arg in args if not str(arg).startswith(FLAG)]
    changed = _with_args(deployment, [*others, *(FLAG + name for name in kept)])
    return _annotated(changed, REPLACED_ARGS, msgspec.json.encode(args).decode())


def with_tfjobs(deployment: Manifest) -> Manifest | None:
    """The Deployment as it was before; None if tfyard did not change it."""
    annotations = deployment["metadata"].get("annotations") or {}
    if REPLACED_REPLICAS in annotations:
        return _annotated(_scaled(deployment, int(annotations[REPLACED_REPLICAS])), REPLACED_REPLICAS, None)
    if REPLACED_ARGS in annotations:
        args = msgspec.json.decode(annotations[REPLACED_ARGS])
        return _annotated(_with_args(deployment, args), REPLACED_ARGS, None)
    return None


def blocks_tfjobs(configuration: Manifest) -> bool:
    """Whether a webhook of training-operator must answer before a TFJob is stored."""
    return any(_is_about_tfjobs(webhook) for webhook in configuration.get("webhooks") or [])


def without_webhooks(configuration: Manifest) -> Manifest:
    webhooks = configuration["webhooks"]
    removed = [webhook for webhook in webhooks if _is_about_tfjobs(webhook)]
    kept = [webhook for webhook in webhooks if not _is_about_tfjobs(webhook)]
    return _annotated(
        {**configuration, "webhooks": kept}, REPLACED_WEBHOOKS, msgspec.json.encode(removed).decode()
    )


def with_webhooks(configuration: Manifest) -> Manifest | None:
    annotations = configuration["metadata"].get("annotations") or {}
    if REPLACED_WEBHOOKS not in annotations:
        return None
    webhooks = [*(configuration.get("webhooks") or []), *msgspec.json.decode(annotations[REPLACED_WEBHOOKS])]
    return _annotated({**configuration, "webhooks": webhooks}, REPLACED_WEBHOOKS, None)


def showing_its_state(definition: Manifest) -> Manifest:
    """The CRD of TFJobs with the column State of training-operator's CRD: it writes no phase, and drops ours."""
    versions = [{**each, **_columns(each)} for each in definition["spec"]["versions"]]
    return {**definition, "spec": {**definition["spec"], "versions": versions}}


def _columns(version: Manifest) -> Manifest:
    key = "additionalPrinterColumns"
    return {
        key: [
            {**each, "jsonPath": STATE_PATH} if each["name"] == "State" else each
            for each in version.get(key) or []
        ]
    }


def _is_about_tfjobs(webhook: Manifest) -> bool:
    if not str(webhook.get("name", "")).endswith("training-operator.kubeflow.org"):
        return False
    return any("tfjobs" in (rule.get("resources") or []) for rule in webhook.get("rules") or [])


def _container(deployment: Manifest) -> Manifest:
    containers: list[Manifest] = deployment["spec"]["template"]["spec"]["containers"]
    return next((each for each in containers if each["name"] == "training-operator"), containers[0])


def _schemes(container: Manifest) -> list[str]:
    args = [str(arg) for arg in [*(container.get("command") or []), *(container.get("args") or [])]]
    return [arg.removeprefix(FLAG).lower() for arg in args if arg.startswith(FLAG)]


def _with_args(deployment: Manifest, args: list[str]) -> Manifest:
    operator = _container(deployment)
    pod = deployment["spec"]["template"]["spec"]
    containers = [{**each, "args": args} if each is operator else each for each in pod["containers"]]
    template = {**deployment["spec"]["template"], "spec": {**pod, "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "template": template}}


def _scaled(deployment: Manifest, replicas: int) -> Manifest:
    return {**deployment, "spec": {**deployment["spec"], "replicas": replicas}}


def _annotated(manifest: Manifest, key: str, value: str | None) -> Manifest:
    """The object with this annotation, or without it if the value is None."""
    annotations = {k: v for k, v in (manifest["metadata"].get("annotations") or {}).items() if k != key}
    if value is not None:
        annotations[key] = value
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}
