"""A Job's way back into the short file: what has a word becomes that word, the rest an overlay.

The pod template is peeled: each known part is taken out of a copy, and what is left is exactly what the
overlay must add. So nothing of a template is lost.
"""

import copy
from typing import Any

from tfyard.model import (
    TENSORFLOW_CONTAINER,
    Code,
    Job,
    Manifest,
    Role,
    SchedulingPolicy,
    TensorBoard,
    tensorflow_container,
)
from tfyard.model.names import DEFAULT_PORT, PORT_NAME

from .. import durations, templates
from . import volumes
from .load import CLEAN, QUEUE_LABEL, RESTART, affinity

Words = dict[str, Any]

_RESTART_WORDS = {policy: word for word, policy in RESTART.items()}
_CLEAN_WORDS = {policy: word for word, policy in CLEAN.items()}


def dump(job: Job) -> tuple[Words, list[str]]:
    """The file's words, and what could not be said in them."""
    roles = {role.name.lower(): _role(job, role) for role in job.roles}
    if job.run_policy.evaluator_grace and "evaluator" in roles:
        roles["evaluator"]["grace"] = durations.write(job.run_policy.evaluator_grace)
    shared = _shared(list(roles.values()))
    if shared.get("labels") != _labels(job):
        shared.pop("labels", None)  # at the top the word is about the job, too
    head: Words = {"name": job.name}
    if job.namespace != "default":
        head["namespace"] = job.namespace
    if job.code is not None:
        head["code"] = _code(job.code)
    words = head | shared
    for name, own in roles.items():
        words[name] = _short({key: value for key, value in own.items() if key not in shared})
    return words | _policy(job), _lost(job)


def _shared(roles: list[Words]) -> Words:
    """What all roles agree on is said once, at the top."""
    first, *others = roles or [{}]
    return {
        key: value
        for key, value in first.items()
        if key not in ("count", "grace") and all(key in role and role[key] == value for role in others)
    }


def _short(own: Words) -> Words | int:
    return int(own["count"]) if set(own) == {"count"} else own


def _role(job: Job, role: Role) -> Words:
    rest = copy.deepcopy(role.template)
    spec = rest.setdefault("spec", {})
    spec.pop("restartPolicy", None)  # the role's own policy rules; this one never had an effect
    container = tensorflow_container(rest)
    words: Words = {"count": role.replicas, **_program(job, container)}
    words |= {"restart": _RESTART_WORDS[role.restart]} if role.restart != "Never" else {}
    words |= _port(role, container) | _env(container) | _resources(container) | _volumes(job, spec, container)
    words |= _placement(job, spec) | _metadata(rest)
    overlay = _remainder(rest, container)
    return words | ({"overlay": overlay} if overlay else {})


def _program(job: Job, container: Manifest) -> Words:
    words: Words = {}
    if image := container.pop("image", ""):
        words["image"] = image
    if container.get("command"):
        words["run"] = _run([*container.pop("command"), *(container.pop("args", None) or [])])
    workdir = container.pop("workingDir", None)
    if workdir and not (job.code and workdir == job.code.at):
        words["workdir"] = workdir
    return words


def _run(command: list[str]) -> str | list[str]:
    match command:
        case ["/bin/sh", "-c", line]:
            return str(line)
    return command


def _port(role: Role, container: Manifest) -> Words:
    if container.get("ports") == [{"name": PORT_NAME, "containerPort": role.port}]:
        del container["ports"]
        return {"port": role.port}
    return {"port": role.port} if role.port != DEFAULT_PORT else {}


def _env(container: Manifest) -> Words:
    """All or nothing: values may refer to earlier ones, so their order must not change."""
    entries = container.get("env") or []
    names = [entry.get("name") for entry in entries]
    if (
        not entries
        or len(set(names)) != len(names)
        or any(set(entry) - {"name", "value"} for entry in entries)
    ):
        return {}
    del container["env"]
    return {"env": {entry["name"]: entry.get("value", "") for entry in entries}}


def _resources(container: Manifest) -> Words:
    resources = container.get("resources") or {}
    limits, requests = {**(resources.get("limits") or {})}, resources.get("requests") or {}
    devices = {name: limits.pop(name) for name in [*limits] if name not in ("cpu", "memory")}
    if (
        set(resources) - {"limits", "requests"}
        or requests != limits
        or not all(map(_is_count, devices.values()))
    ):
        return {}
    container.pop("resources", None)
    gpu: Any = devices[templates.GPU] if set(devices) == {templates.GPU} else devices
    return {key: limits[key] for key in ("cpu", "memory") if key in limits} | ({"gpu": gpu} if gpu else {})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


def _volumes(job: Job, spec: Manifest, container: Manifest) -> Words:
    claims = {made["metadata"]["name"]: made["spec"] for made in job.objects}
    found: Words = {}
    for volume in list(spec.get("volumes") or []):
        mounts = [m for m in container.get("volumeMounts") or [] if m.get("name") == volume.get("name")]
        words = volumes.words_for(volume, mounts[0]) if len(mounts) == 1 else None
        if words is not None and not _is_used_elsewhere(spec, container, volume["name"]):
            found[volume["name"]] = words | volumes.claim_words(claims.get(words.get("claim")))
            spec["volumes"].remove(volume)
            container["volumeMounts"].remove(mounts[0])
    for owner, key in ((spec, "volumes"), (container, "volumeMounts")):
        if not owner.get(key):
            owner.pop(key, None)
    return {"volumes": found} if found else {}


def _is_used_elsewhere(spec: Manifest, container: Manifest, name: str) -> bool:
    others = [
        c for key in ("containers", "initContainers") for c in spec.get(key) or [] if c is not container
    ]
    return any(mount.get("name") == name for other in others for mount in other.get("volumeMounts") or [])


def _placement(job: Job, spec: Manifest) -> Words:
    words: Words = {}
    secrets = spec.pop("imagePullSecrets", None) or []
    if secrets:
        names = [secret.get("name") for secret in secrets]
        words["pullSecret"] = names[0] if len(names) == 1 else names
    for field, word in (
        ("serviceAccountName", "serviceAccount"),
        ("nodeSelector", "nodeSelector"),
        ("nodeName", "node"),
        ("tolerations", "tolerations"),
    ):
        if value := spec.pop(field, None):
            words[word] = value
    for spread in ("prefer", "require"):
        if spec.get("affinity") == affinity(spread, job.name):
            words["spread"] = spread
            del spec["affinity"]
    return words


def _metadata(template: Manifest) -> Words:
    metadata = template.get("metadata") or {}
    return {key: value for key in ("labels", "annotations") if (value := metadata.pop(key, None))}


def _remainder(template: Manifest, container: Manifest) -> Manifest:
    """The template after all that has a word was taken out of it."""
    spec = template["spec"]
    if container.get("name", TENSORFLOW_CONTAINER) == TENSORFLOW_CONTAINER and len(container) <= 1:
        spec["containers"] = [c for c in spec.get("containers") or [] if c is not container]
    if not spec.get("containers"):
        spec.pop("containers", None)
    return {key: part for key, part in template.items() if part}


def _labels(job: Job) -> dict[str, str]:
    return {name: value for name, value in job.labels.items() if name != QUEUE_LABEL}


def _policy(job: Job) -> Words:
    policy = job.run_policy
    words: Words = {
        "deadline": durations.write(policy.deadline) if policy.deadline is not None else None,
        "retries": policy.backoff_limit,
        "keepFor": durations.write(policy.ttl) if policy.ttl is not None else None,
        "clean": _CLEAN_WORDS[policy.clean] if policy.clean != "Running" else None,
        "success": "all-workers" if job.success == "AllWorkers" else None,
        "suspend": policy.suspend or None,
        "dynamic": job.dynamic_workers or None,
        "queue": job.labels.get(QUEUE_LABEL),
        "gang": _gang(policy.scheduling),
        "tensorboard": _tensorboard(job.tensorboard),
        "dialect": job.dialect if job.dialect != "tf2" else None,
        "services": job.services,
    }
    return {key: value for key, value in words.items() if value is not None}


def _gang(policy: SchedulingPolicy | None) -> Words | bool | None:
    if policy is None:
        return None
    words: Words = {
        "atLeast": policy.min_available,
        "queue": policy.queue or None,
        "priorityClass": policy.priority_class or None,
        "resources": policy.min_resources,
        "timeout": durations.write(policy.timeout) if policy.timeout is not None else None,
    }
    return {key: value for key, value in words.items() if value is not None} or True


def _tensorboard(board: TensorBoard | None) -> Words | str | None:
    if board is None:
        return None
    words: Words = {"logs": board.log_dir}
    words |= {"image": board.image} if board.image else {}
    words |= {"service": board.service_type} if board.service_type != "ClusterIP" else {}
    return board.log_dir if len(words) == 1 else words


def _code(code: Code) -> Words | str:
    key = {"folder": "path", "git": "git", "http": "url"}[code.kind]
    words = {key: code.source} | ({"ref": code.ref} if code.ref else {})
    words |= {"at": code.at} if code.at != Code(kind="folder", source="").at else {}
    return code.source if set(words) == {"path"} else words


def _lost(job: Job) -> list[str]:
    """What the file has no words for."""
    lost = []
    if job.fails_with == "chief":
        lost.append("a failed worker fails the job now; v1alpha1 looked at its chief only")
    if job.chief is not None:
        lost.append(f"the job ended with {job.chief.name}; now it ends with the chief, else worker 0")
    if job.run_policy.managed_by:
        lost.append(f"managedBy: {job.run_policy.managed_by}")
    unsaid = {name for name in _labels(job) if any(name not in _pod_labels(role) for role in job.roles)}
    if unsaid:
        lost.append(f"labels of the job: {', '.join(sorted(unsaid))}")
    if job.annotations:
        lost.append(f"annotations of the job: {', '.join(sorted(job.annotations))}")
    return lost


def _pod_labels(role: Role) -> dict[str, str]:
    return (role.template.get("metadata") or {}).get("labels") or {}
