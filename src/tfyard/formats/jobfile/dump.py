"""A Job's way back into the short file: what has a word becomes that word, the rest an overlay.

The pod template is peeled: each known part is taken out of a copy, and what is left is exactly what the
overlay must add. So nothing of a template is lost.
"""

from typing import Any

from tfyard.model import (
    EVALUATOR,
    Code,
    Job,
    Manifest,
    Role,
    SchedulingPolicy,
    TensorBoard,
    tensorflow_container,
)
from tfyard.model.names import PORT_NAME

from .. import durations, templates
from ..tfjob import MAX_REPLICAS
from . import volumes
from .load import CLEAN, QUEUE_LABEL, RESTART, affinity, code_words

Words = dict[str, Any]

_RESTART_WORDS = {policy: word for word, policy in RESTART.items()}
_CLEAN_WORDS = {policy: word for word, policy in CLEAN.items()}


_OF_ONE_ROLE = ("count", "grace")
_MERGED = ("volumes", "labels", "annotations", "nodeSelector")
"""Words whose entries in a role join those at the top."""


def dump(job: Job) -> tuple[Words, list[str]]:
    """The file's words, and what could not be said in them."""
    roles = {role.name.lower(): _role(job, role) for role in job.roles}
    if job.run_policy.evaluator_grace and "evaluator" in roles:
        roles["evaluator"]["grace"] = durations.write(job.run_policy.evaluator_grace)
    shared = _shared(list(roles.values()))
    shared.pop("labels", None)
    if all(_labels(job).keys() <= own.get("labels", {}).keys() for own in roles.values()):
        shared["labels"] = _labels(job)  # at the top the word is about the job as well
    head: Words = {"name": job.name}
    if job.namespace != "default":
        head["namespace"] = job.namespace
    if job.code is not None:
        head["code"] = _code(job.code)
    words = head | {key: value for key, value in shared.items() if value != {}}
    for name, own in roles.items():
        words[name] = _short(_without(own, shared))
    words |= _policy(job) | _tensorboard(job.tensorboard, shared.get("volumes", {}))
    return words, _lost(job, words, roles)


def _shared(roles: list[Words]) -> Words:
    """What all roles agree on is said once, at the top."""
    first, *others = roles or [{}]
    found: Words = {}
    for key, value in first.items():
        if key in _MERGED:
            value = {name: part for name, part in value.items() if _all_have(others, key, name, part)}
        elif key in _OF_ONE_ROLE or any(key not in role or role[key] != value for role in others):
            continue
        if value != {}:
            found[key] = value
    return found


def _all_have(roles: list[Words], key: str, name: str, part: object) -> bool:
    return all(name in role.get(key, {}) and role[key][name] == part for role in roles)


def _without(own: Words, shared: Words) -> Words:
    rest: Words = {}
    for key, value in own.items():
        if key in _MERGED:
            value = {name: part for name, part in value.items() if shared.get(key, {}).get(name) != part}
        if value != {} and (key in _MERGED or key not in shared):
            rest[key] = value
    return rest


def _short(own: Words) -> Words | int:
    return int(own["count"]) if set(own) == {"count"} else own


def _role(job: Job, role: Role) -> Words:
    rest = _given_only(templates.with_port(role.template, role.port))
    spec = rest.setdefault("spec", {})
    spec.pop("restartPolicy", None)  # the role's own policy rules; this one never had an effect
    container = tensorflow_container(rest)
    words: Words = {"count": role.replicas, **_program(job, container)}
    words |= {"restart": _RESTART_WORDS[role.restart]} if role.restart != "Never" else {}
    words |= _port(container) | _env(container) | _resources(container) | _volumes(job, spec, container)
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


def _port(container: Manifest) -> Words:
    match container.get("ports"):
        case [{"name": name, "containerPort": number, **rest}] if name == PORT_NAME and not rest:
            del container["ports"]
            return {"port": number}
    return {}


def _env(container: Manifest) -> Words:
    """All or nothing: values may refer to earlier ones, so their order must not change."""
    entries = container.get("env") or []
    values = {entry["name"]: entry.get("value") for entry in entries if set(entry) == {"name", "value"}}
    if not entries or len(values) != len(entries):
        return {}
    del container["env"]
    return {"env": values}


def _resources(container: Manifest) -> Words:
    resources = container.get("resources") or {}
    limits, requests = {**(resources.get("limits") or {})}, resources.get("requests") or {}
    devices = {name: limits.pop(name) for name in [*limits] if name not in ("cpu", "memory")}
    if (
        set(resources) - {"limits", "requests"}
        or requests != limits
        or not all(limits.values())
        or not all(map(_is_count, devices.values()))
    ):
        return {}
    container.pop("resources", None)
    gpu: Any = devices[templates.GPU] if set(devices) == {templates.GPU} else devices
    return {key: limits[key] for key in ("cpu", "memory") if key in limits} | ({"gpu": gpu} if gpu else {})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_REPLICAS


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
    secrets = spec.get("imagePullSecrets")
    if secrets and all(set(secret) == {"name"} for secret in secrets):
        names = [secret["name"] for secret in spec.pop("imagePullSecrets")]
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
    if list(container) == ["name"] and len(spec["containers"]) == 1:  # beside others, it keeps their order
        del spec["containers"]
    return {key: part for key, part in template.items() if part}


def _given_only(value: Any) -> Any:
    """A copy to peel. Null means "not set" to Kubernetes, but to an overlay it means "remove", and a field
    that begins with $, which Kubernetes would drop, means an order."""
    if isinstance(value, dict):
        return {k: _given_only(v) for k, v in value.items() if v is not None and not k.startswith("$")}
    return [_given_only(item) for item in value] if isinstance(value, list) else value


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


def _tensorboard(board: TensorBoard | None, shared: Words) -> Words:
    if board is None:
        return {}
    words: Words = {"logs": board.log_dir}
    words |= {"image": board.image} if board.image else {}
    words |= {"service": board.service_type} if board.service_type != "ClusterIP" else {}
    found = _board_volumes(board)
    if found != {name: volumes.without_claim(volume) for name, volume in shared.items()}:
        words["volumes"] = found
    return {"tensorboard": board.log_dir if len(words) == 1 else words}


def _board_volumes(board: TensorBoard) -> Words:
    found: Words = {}
    for volume in map(_given_only, board.volumes):
        mounts = [_given_only(mount) for mount in board.mounts if mount.get("name") == volume["name"]]
        if len(mounts) == 1 and (words := volumes.words_for(volume, mounts[0])) is not None:
            found[volume["name"]] = words
    return found


def _code(code: Code) -> Words | str:
    key = {"folder": "path", "git": "git", "http": "url"}[code.kind]
    words = {key: code.source} | ({"ref": code.ref} if code.ref else {})
    words |= {"at": code.at} if code.at != Code(kind="folder", source="").at else {}
    is_short = set(words) == {"path"} and code_words(code.source).path == code.source
    return code.source if is_short else words


def _lost(job: Job, words: Words, roles: dict[str, Words]) -> list[str]:
    """What the file has no words for."""
    lost = []
    if job.fails_with == "chief":
        lost.append("a failed worker fails the job now; v1alpha1 looked at its chief only")
    if job.chief is not None:
        lost.append(f"the job ended with {job.chief.name}; now it ends with the chief, else worker 0")
    if job.run_policy.managed_by:
        lost.append(f"managedBy: {job.run_policy.managed_by}")
    if job.run_policy.evaluator_grace and job.role(EVALUATOR) is None:
        lost.append("the grace of an evaluator: there is none")
    if _labels(job) and "labels" not in words:
        lost.append(f"labels of the job: {', '.join(sorted(_labels(job)))}")
    if job.annotations:
        lost.append(f"annotations of the job: {', '.join(sorted(job.annotations))}")
    board = job.tensorboard
    if board is not None and not len(board.volumes) == len(board.mounts) == len(_board_volumes(board)):
        lost.append("some volumes of tensorboard")
    said = {volume.get("claim") for own in roles.values() for volume in own.get("volumes", {}).values()}
    unsaid = [made["metadata"]["name"] for made in job.objects if made["metadata"]["name"] not in said]
    return lost + [f"the claim {name}, which is to be created" for name in unsaid]
