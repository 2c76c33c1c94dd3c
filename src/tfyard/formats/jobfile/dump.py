"""Job -> job file: what has a word becomes that word (shorten.py), the rest an overlay."""

from tfyard.model import EVALUATOR, Code, Job, SchedulingPolicy, TensorBoard
from tfyard.model.names import QUEUE_NAME

from .. import durations
from . import volumes
from .code import split_address
from .load import CLEAN
from .shorten import Words, claims_of, given_only, role_words

_CLEAN_WORDS = {policy: word for word, policy in CLEAN.items()}
_OF_ONE_ROLE = ("count", "grace")
_MERGED = ("volumes", "labels", "annotations", "nodeSelector")
"""Words whose entries in a role join those at the top."""


def dump(job: Job) -> tuple[Words, list[str]]:
    """The words of the file, and what has no words."""
    roles = {role.name.lower(): role_words(job, role) for role in job.roles}
    if job.run_policy.evaluator_grace and "evaluator" in roles:
        roles["evaluator"]["grace"] = durations.write(job.run_policy.evaluator_grace)
    shared = _shared(list(roles.values()))
    shared.pop("labels", None)
    if all(_labels(job).keys() <= own.get("labels", {}).keys() for own in roles.values()):
        shared["labels"] = _labels(job)  # at the top, the word sets labels of the job too
    head: Words = {"name": job.name}
    if job.namespace != "default":
        head["namespace"] = job.namespace
    if job.code is not None:
        head["code"] = _code(job.code)
        head |= {"requirements": job.code.requirements} if job.code.requirements else {}
    if job.tf1:
        head["tf1"] = True
    words = head | {key: value for key, value in shared.items() if value != {}}
    for name, own in roles.items():
        words[name] = _short(_without(own, shared))
    words |= _policy(job) | _tensorboard(job, shared.get("volumes", {}))
    return words, _lost(job, words, roles)


def _shared(roles: list[Words]) -> Words:
    """What is equal in all roles is written once, at the top."""
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


def _labels(job: Job) -> dict[str, str]:
    return {name: value for name, value in job.labels.items() if name != QUEUE_NAME}


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
        "queue": job.labels.get(QUEUE_NAME),
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


def _tensorboard(job: Job, shared: Words) -> Words:
    board = job.tensorboard
    if board is None:
        return {}
    words: Words = {"logs": board.log_dir}
    words |= {"image": board.image} if board.image else {}
    words |= {"service": board.service_type} if board.service_type != "ClusterIP" else {}
    found = _board_volumes(job, board)
    if found != shared:
        words["volumes"] = found
    return {"tensorboard": board.log_dir if len(words) == 1 else words}


def _board_volumes(job: Job, board: TensorBoard) -> Words:
    claims = claims_of(job)
    found: Words = {}
    for volume in map(given_only, board.volumes):
        mounts = [given_only(mount) for mount in board.mounts if mount.get("name") == volume["name"]]
        if len(mounts) == 1 and (words := volumes.words_for(volume, mounts[0])) is not None:
            found[volume["name"]] = words | volumes.claim_words(claims.get(words.get("claim")))
    return found


def _code(code: Code) -> Words | str:
    key = {"folder": "from", "git": "git", "http": "url"}[code.kind]
    if key == "from" and split_address(code.source)[0] != code.kind:
        key = "path"  # a folder whose name looks like an address
    words = {key: code.source} | ({"ref": code.ref} if code.ref else {})
    words |= {"at": code.at} if code.at != Code(kind="folder", source="").at else {}
    words |= {"claim": code.claim} if code.claim else {}
    return code.source if set(words) == {"from"} else words


def _lost(job: Job, words: Words, roles: dict[str, Words]) -> list[str]:
    """What the file has no words for."""
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
    board = job.tensorboard
    shown = _board_volumes(job, board) if board else {}
    if board is not None and not len(board.volumes) == len(board.mounts) == len(shown):
        lost.append("some volumes of tensorboard")
    everywhere = [*shown.values(), *(v for own in roles.values() for v in own.get("volumes", {}).values())]
    unsaid = claims_of(job).keys() - {volume.get("claim") for volume in everywhere}
    return lost + [f"the creation of the claim {name}" for name in sorted(unsaid)]
