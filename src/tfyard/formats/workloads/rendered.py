"""Removes from workloads what `tfyard render` adds to them for a cluster without the operator: the init container
that waits for the names of the other tasks, the scripts around the program, and the variables that these read.

One Job may run the tasks of all roles, by task.sh; it becomes one workload for each role.
"""

from typing import Any

from tfyard.model import Manifest, tensorflow_container
from tfyard.model.names import (
    CLUSTER_VARIABLE,
    EVALUATOR_VARIABLE,
    LAST_STEP_VARIABLE,
    REPLICA_TYPE,
    SCRIPTS_AT,
    SCRIPTS_VOLUME,
    WAIT_CONTAINER,
)

_VARIABLES = (CLUSTER_VARIABLE, EVALUATOR_VARIABLE, LAST_STEP_VARIABLE, "TASK_INDEX", "TF_CONFIG")


def workloads(data: Manifest, name: str) -> list[tuple[str, Manifest]]:
    """The workloads of a document whose pod template is valid, with their names, and without tfyard's additions;
    the document itself, if it has none."""
    template = data["spec"]["template"]
    inits = template["spec"].get("initContainers") or []
    if all(each["name"] != WAIT_CONTAINER for each in inits):
        return [(name, data)]
    spec = {**data["spec"], "template": _plain(template)}
    command = _command(template)
    if command[1:2] != [f"{SCRIPTS_AT}/task.sh"] or "--" not in command:
        return [(name, {**data, "spec": _with_command(spec, _program(command))})]
    end = command.index("--")
    counts = [word.rpartition(":") for word in command[2:end]]
    spec = _with_command(spec, command[end + 1 :])
    return [
        (f"{name}-{role}", {**data, "spec": _of_role(spec, role, int(count))})
        for role, _, count in counts
        if count.isdecimal()
    ]


def _plain(template: Manifest) -> Manifest:
    spec = {**template["spec"]}
    spec["initContainers"] = [each for each in spec["initContainers"] if each.get("name") != WAIT_CONTAINER]
    spec["volumes"] = _others(spec.get("volumes"))
    if _command(template)[1:2] == [f"{SCRIPTS_AT}/last.sh"]:
        spec.pop("serviceAccountName", None)  # it is for the last step only
    kinds = ("initContainers", "containers")
    spec |= {kind: [_container(each) for each in spec.get(kind) or []] for kind in kinds}
    return {**template, "spec": {key: value for key, value in spec.items() if value != []}}


def _container(container: Manifest) -> Manifest:
    env = [each for each in container.get("env") or [] if each.get("name") not in _VARIABLES]
    parts = {"env": env, "volumeMounts": _others(container.get("volumeMounts"))}
    return {**{key: value for key, value in container.items() if key not in parts}, **_filled(parts)}


def _others(named: Any) -> list[Manifest]:
    """Volumes or mounts without that of the scripts."""
    return [each for each in named or [] if each.get("name") != SCRIPTS_VOLUME]


def _filled(parts: Manifest) -> Manifest:
    return {key: value for key, value in parts.items() if value}


def _command(template: Manifest) -> list[str]:
    return [str(word) for word in tensorflow_container(template).get("command") or []]


def _program(command: list[str]) -> list[str]:
    """The program itself, of a command that may run it by last.sh."""
    return command[2:] if command[1:2] == [f"{SCRIPTS_AT}/last.sh"] else command


def _with_command(spec: Manifest, command: list[str]) -> Manifest:
    template = spec["template"]
    training = tensorflow_container(template)
    changed = {**training, "command": command} if command else training
    containers = [changed if each is training else each for each in template["spec"]["containers"]]
    return {**spec, "template": {**template, "spec": {**template["spec"], "containers": containers}}}


def _of_role(spec: Manifest, role: str, count: int) -> Manifest:
    """The tasks of one role as a Job of their own."""
    metadata = spec["template"].get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), REPLICA_TYPE: role}
    template = {**spec["template"], "metadata": {**metadata, "labels": labels}}
    return {**spec, "completions": count, "parallelism": count, "template": template}
