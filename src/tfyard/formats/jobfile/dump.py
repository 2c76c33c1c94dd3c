"""Job -> job file: fields that have a word become that word; all others of a pod template become an overlay."""

from typing import Any

from tfyard.formats import shell
from tfyard.formats.pods import templates
from tfyard.formats.tfjob.fields import MAX_REPLICAS
from tfyard.model import (
    EVALUATOR,
    Code,
    Job,
    Manifest,
    Role,
    SchedulingPolicy,
    Stall,
    TensorBoard,
    tensorflow_container,
)
from tfyard.model.durations import write_duration
from tfyard.model.names import GPU, PORT_NAME, QUEUE_NAME

from . import volumes
from .code import split_address
from .load import CLEAN, RESTART, affinity

Words = dict[str, Any]

_RESTART_WORDS = {policy: word for word, policy in RESTART.items()}
_CLEAN_WORDS = {policy: word for word, policy in CLEAN.items()}
_OF_ONE_ROLE = ("count", "grace")
_MERGED = ("volumes", "labels", "annotations", "nodeSelector")
"""Words whose entries in a role are added to those at the top."""


def dump(job: Job) -> tuple[Words, list[str]]:
    """The words of the file, and descriptions of what the file cannot express."""
    roles = {role.name.lower(): _role_words(job, role) for role in job.roles}
    if job.run_policy.evaluator_grace and "evaluator" in roles:
        roles["evaluator"]["grace"] = write_duration(job.run_policy.evaluator_grace)
    shared = _shared(list(roles.values()))
    shared.pop("labels", None)
    if all(_labels(job).keys() <= own.get("labels", {}).keys() for own in roles.values()):
        shared["labels"] = _labels(job)  # at the top, this word also sets the labels of the job
    words = _head(job) | {key: value for key, value in shared.items() if value != {}}
    for name, own in roles.items():
        words[name] = _short(_without(own, shared))
    words |= _policy(job) | _tensorboard(job, shared.get("volumes", {}))
    return words, _lost(job, words, roles)


def _head(job: Job) -> Words:
    words: Words = {"name": job.name}
    if job.namespace != "default":
        words["namespace"] = job.namespace
    if job.code is not None:
        words["code"] = _code(job.code)
        words |= {"requirements": job.code.requirements} if job.code.requirements else {}
    return words | ({"tf1": True} if job.tf1 else {})


def _shared(roles: list[Words]) -> Words:
    """The words that are equal in all roles: they are written once, at the top."""
    first, *others = roles or [{}]
    shared: Words = {}
    for key, value in first.items():
        if key in _MERGED:
            value = {name: part for name, part in value.items() if _all_have(others, key, name, part)}
        elif key in _OF_ONE_ROLE or any(key not in role or role[key] != value for role in others):
            continue
        if value != {}:
            shared[key] = value
    return shared


def _all_have(roles: list[Words], key: str, name: str, part: object) -> bool:
    return all(name in role.get(key, {}) and role[key][name] == part for role in roles)


def _without(own: Words, shared: Words) -> Words:
    words: Words = {}
    for key, value in own.items():
        if key in _MERGED:
            value = {name: part for name, part in value.items() if shared.get(key, {}).get(name) != part}
        if value != {} and (key in _MERGED or key not in shared):
            words[key] = value
    return words


def _short(own: Words) -> Words | int:
    return int(own["count"]) if set(own) == {"count"} else own


def _labels(job: Job) -> dict[str, str]:
    return {name: value for name, value in job.labels.items() if name != QUEUE_NAME}


def _policy(job: Job) -> Words:
    policy = job.run_policy
    words: Words = {
        "deadline": write_duration(policy.deadline) if policy.deadline is not None else None,
        "retries": policy.backoff_limit,
        "stall": _stall(policy.stall),
        "keepFor": write_duration(policy.ttl) if policy.ttl is not None else None,
        "clean": _CLEAN_WORDS[policy.clean] if policy.clean != "Running" else None,
        "success": "all-workers" if job.success == "AllWorkers" else None,
        "suspend": policy.suspend or None,
        "dynamic": job.dynamic_workers or None,
        "together": job.together or None,
        "queue": job.labels.get(QUEUE_NAME),
        "gang": _gang(policy.scheduling),
        "mlflow": job.mlflow.uri or None if job.mlflow else None,
        "dialect": job.dialect if job.dialect != "tf2" else None,
        "services": job.services,
    }
    return {key: value for key, value in words.items() if value is not None}


def _stall(stall: Stall | None) -> Words | str | None:
    if stall is None:
        return None
    after = write_duration(stall.after)
    return after if stall.then == "report" else {"after": after, "then": stall.then}


def _gang(policy: SchedulingPolicy | None) -> Words | bool | None:
    if policy is None:
        return None
    words: Words = {
        "atLeast": policy.min_available,
        "queue": policy.queue or None,
        "priorityClass": policy.priority_class or None,
        "resources": policy.min_resources,
        "timeout": write_duration(policy.timeout) if policy.timeout is not None else None,
    }
    return {key: value for key, value in words.items() if value is not None} or True


def _tensorboard(job: Job, shared: Words) -> Words:
    board = job.tensorboard
    if board is None:
        return {}
    words: Words = {"logs": board.log_dir}
    words |= {"image": board.image} if board.image else {}
    words |= {"service": board.service_type} if board.service_type != "ClusterIP" else {}
    own = _board_volumes(job, board)
    if own != shared:
        words["volumes"] = own
    return {"tensorboard": board.log_dir if len(words) == 1 else words}


def _board_volumes(job: Job, board: TensorBoard) -> Words:
    claims = _claims_of(job)
    board_volumes: Words = {}
    for volume in map(_without_nulls, board.volumes):
        mounts = [_without_nulls(mount) for mount in board.mounts if mount.get("name") == volume["name"]]
        if len(mounts) == 1 and (words := volumes.words_for(volume, mounts[0])) is not None:
            board_volumes[volume["name"]] = words | volumes.claim_words(claims.get(words.get("claim")))
    return board_volumes


def _code(code: Code) -> Words | str:
    key = {"folder": "from", "git": "git", "http": "url"}[code.kind]
    if key == "from" and split_address(code.source)[0] != code.kind:
        key = "path"  # a folder whose name looks like an address
    words = {key: code.source} | ({"ref": code.ref} if code.ref else {})
    words |= {"at": code.at} if code.at != Code(kind="folder", source="").at else {}
    words |= {"claim": code.claim} if code.claim else {}
    return code.source if set(words) == {"from"} else words


def _lost(job: Job, words: Words, roles: dict[str, Words]) -> list[str]:
    """Descriptions of what the file cannot express."""
    lost = []
    if job.has_harmless_failures:
        lost.append("a failed worker fails the job; in v1alpha1 only the chief did")
    if job.chief is not None:
        lost.append(f"the job ended with {job.chief.name}; now it ends with the chief, else with worker 0")
    lost += [
        f"restartPolicy {role.overruled_restart} in the pod template of {role.name}: it has no effect"
        for role in job.roles
        if role.overruled_restart
    ]
    if job.run_policy.managed_by:
        lost.append(f"managedBy: {job.run_policy.managed_by}")
    if job.run_policy.evaluator_grace and job.role(EVALUATOR) is None:
        lost.append("the grace of an evaluator: the job has none")
    if _labels(job) and "labels" not in words:
        lost.append(f"labels of the job: {', '.join(sorted(_labels(job)))}")
    if job.annotations:
        lost.append(f"annotations of the job: {', '.join(sorted(job.annotations))}")
    return lost + _lost_volumes(job, roles)


def _lost_volumes(job: Job, roles: dict[str, Words]) -> list[str]:
    board = job.tensorboard
    shown = _board_volumes(job, board) if board else {}
    is_whole = board is None or len(board.volumes) == len(board.mounts) == len(shown)
    everywhere = [*shown.values(), *(v for own in roles.values() for v in own.get("volumes", {}).values())]
    undescribed = _claims_of(job).keys() - {volume.get("claim") for volume in everywhere}
    lost = [f"the creation of the claim {name}" for name in sorted(undescribed)]
    return lost if is_whole else ["some volumes of tensorboard", *lost]


# --- the words of a role, from its pod template


def _role_words(job: Job, role: Role) -> Words:
    """Each step removes the fields that have a word from a copy of the pod template. The remaining fields are
    exactly the overlay, so nothing of a template is lost."""
    template = _without_nulls(templates.with_port(role.template, role.port))
    spec = template.setdefault("spec", {})
    spec.pop("restartPolicy", None)  # it has no effect: the role's own policy is used
    container = tensorflow_container(template)
    words: Words = {"count": role.replicas, **_program(job, container)}
    words |= {"restart": _RESTART_WORDS[role.restart]} if role.restart != "Never" else {}
    words |= _port(container) | _env(container) | _resources(container) | _volumes(job, spec, container)
    words |= _placement(job, spec) | _metadata(template)
    overlay = _remainder(template, container)
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
    line = shell.line_of(command)
    return line if line and line.strip() else command


def _port(container: Manifest) -> Words:
    match container.get("ports"):
        case [{"name": name, "containerPort": number, **others}] if name == PORT_NAME and not others:
            del container["ports"]
            return {"port": number}
    return {}


def _env(container: Manifest) -> Words:
    """All variables or none: values may refer to earlier variables, so their order must not change."""
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
    gpu: Any = devices[GPU] if set(devices) == {GPU} else devices
    return {key: limits[key] for key in ("cpu", "memory") if key in limits} | ({"gpu": gpu} if gpu else {})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_REPLICAS


def _volumes(job: Job, spec: Manifest, container: Manifest) -> Words:
    """Words for volumes whose only mount is in the training container and whose source has a word."""
    claims = _claims_of(job)
    mounts = _by_name(container.get("volumeMounts"))
    elsewhere = _mounted_elsewhere(spec, container)
    described: Words = {}
    for volume in spec.get("volumes") or []:
        name = volume["name"]
        own = mounts.get(name, [])
        words = volumes.words_for(volume, own[0]) if len(own) == 1 and name not in elsewhere else None
        if words is not None:
            described[name] = words | volumes.claim_words(claims.get(words.get("claim")))
    for owner, key in ((spec, "volumes"), (container, "volumeMounts")):
        others = [item for item in owner.pop(key, None) or [] if item.get("name") not in described]
        owner |= {key: others} if others else {}
    return {"volumes": described} if described else {}


def _claims_of(job: Job) -> dict[Any, Manifest]:
    """Claims that are created with the job: name -> spec."""
    return {claim["metadata"]["name"]: claim["spec"] for claim in job.objects}


def _by_name(items: list[Manifest] | None) -> dict[Any, list[Manifest]]:
    by_name: dict[Any, list[Manifest]] = {}
    for item in items or []:
        by_name.setdefault(item.get("name"), []).append(item)
    return by_name


def _mounted_elsewhere(spec: Manifest, container: Manifest) -> set[Any]:
    others = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return {
        mount.get("name")
        for other in others
        if other is not container
        for mount in other.get("volumeMounts") or []
    }


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
    if isinstance(grace := spec.get("terminationGracePeriodSeconds"), int) and grace >= 0:
        words["stopGrace"] = write_duration(spec.pop("terminationGracePeriodSeconds"))
    for spread in ("prefer", "require"):
        if spec.get("affinity") == affinity(spread, job.name):
            words["spread"] = spread
            del spec["affinity"]
    return words


def _metadata(template: Manifest) -> Words:
    metadata = template.get("metadata") or {}
    return {key: value for key in ("labels", "annotations") if (value := metadata.pop(key, None))}


def _remainder(template: Manifest, container: Manifest) -> Manifest:
    """The fields of the template that have no word."""
    spec = template["spec"]
    if (
        list(container) == ["name"] and len(spec["containers"]) == 1
    ):  # with others, it is needed for their order
        del spec["containers"]
    return {key: part for key, part in template.items() if part}


def _without_nulls(value: Any) -> Any:
    """A copy without nulls and $-fields: in a template, Kubernetes takes them as not set and unknown, but in an
    overlay they would remove a field or be a directive."""
    if isinstance(value, dict):
        return {k: _without_nulls(v) for k, v in value.items() if v is not None and not k.startswith("$")}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
