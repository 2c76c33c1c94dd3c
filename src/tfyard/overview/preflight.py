"""What stands in the way of a job that is about to be submitted: everything at once, each with its fix."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model.quantity import amount
from tfyard.overview.cause import Quote, cut, with_tasks
from tfyard.overview.causes import nobody, refusals, scheduling, volumes
from tfyard.overview.doctor import Finding, Level
from tfyard.overview.evidence import NOT_ASKED, Evidence, Unreadable, seen
from tfyard.overview.objects import Claim, Pod, Quota
from tfyard.overview.references import CONFIG_MAP, PRIORITY_CLASS, SERVICE_ACCOUNT, Reference
from tfyard.overview.storage_classes import MANY, ONE, is_shared

QUOTA = "quota"
TRANSIENT = ("cordoned", "node-state")
"""Kinds of causes that go away by themselves or by an administrator's hand: the job may wait for that."""
AUTOSCALED = "; --force if the cluster adds such nodes when they are needed"
COLLECTIONS = ("nodes", "quotas", "claims", "classes", "leases")


class Trial(Struct, frozen=True, kw_only=True):
    """The pod of a role's first task, as the server would store it."""

    role: str
    tasks: tuple[str, ...]
    pod: Pod
    refusal: str = ""
    """The server's answer, if it does not accept the pod."""


class Missing(Struct, frozen=True):
    """What a role refers to and is not there; `keys`: it is there, but without these."""

    role: str
    reference: Reference
    keys: frozenset[str] = frozenset()


class Seen(Struct, frozen=True, kw_only=True):
    evidence: Evidence
    """Name and namespace of the job, and the collections that were listed."""
    trials: tuple[Trial, ...] = ()
    created: tuple[Claim, ...] = ()
    """Claims that are created with the job."""
    missing: tuple[Missing, ...] = ()
    has_other_operator: bool = False
    """Another operator than tfyard's works on TFJobs, or is to work on this one."""
    unread: tuple[str, ...] = ()


def findings(found: Seen, now: datetime) -> list[Finding]:
    parts = (_operator(found, now), _refusals(found), _misfits(found), _together(found))
    return [each for part in (*parts, _quotas(found), _claims(found), _missing(found)) for each in part]


def unchecked(found: Seen) -> list[str]:
    """What could not be looked at, and why."""
    fields = {name: getattr(found.evidence, name) for name in COLLECTIONS}
    unread = [each for each in fields.values() if isinstance(each, Unreadable) and each != NOT_ASKED]
    return [*(each.reason for each in unread), *found.unread]


def _operator(found: Seen, now: datetime) -> Iterator[Finding]:
    leases = found.evidence.leases
    if found.has_other_operator or isinstance(leases, Unreadable):
        return
    if not any(nobody.is_held(lease, now) for lease in leases):
        words, fix = nobody.absence(found.evidence, now)
        yield Finding("wrong", "operator", f"no operator would run the job: {words}", f"`{fix}`")


# --- what the server says of a pod


def _refusals(found: Seen) -> Iterator[Finding]:
    """A quota that is used up is told by `_quotas`, which counts all pods of the job and not only the first."""
    roles: dict[str, list[str]] = {}
    for trial in found.trials:
        roles.setdefault(trial.refusal, []).append(trial.role)
    for message in filter(None, roles):
        cause = refusals.of_message(found.evidence, message, Quote("apiserver", cut(message)))
        if cause.kind == QUOTA and not isinstance(found.evidence.quotas, Unreadable):
            continue
        sentence = (
            f"the server refuses the pods: {cut(message)}" if cause.kind == "refused" else cause.sentence
        )
        level: Level = "warning" if cause.kind == QUOTA else "wrong"
        yield Finding(level, ", ".join(roles[message]), sentence, cause.fix)


# --- nodes


def _misfits(found: Seen) -> Iterator[Finding]:
    nodes = found.evidence.nodes
    if isinstance(nodes, Unreadable):
        return
    if not nodes:
        yield Finding(
            "warning", "nodes", "the cluster has no nodes: the job waits for some", "kubectl get nodes"
        )
        return
    for trial in found.trials:
        if chosen := trial.pod.spec.node_name:  # past the scheduler: taints and labels do not matter
            if all(node.name != chosen for node in nodes):
                yield Finding("wrong", trial.role, f"there is no node {chosen}", "job file: `node:`")
        elif cause := scheduling.misfit(nodes, trial.pod):
            kind, sentence, fix = cause
            level: Level = "warning" if kind in TRANSIENT else "wrong"
            more = "" if kind in TRANSIENT else AUTOSCALED
            yield Finding(
                level, trial.role, with_tasks(sentence, trial.tasks), f"{fix}{more}".removeprefix("; ")
            )


def _together(found: Seen) -> Iterator[Finding]:
    """Tasks wait for each other, so they must all run at once."""
    nodes, asked = seen(found.evidence.nodes), dict[str, float]()
    for trial in found.trials:
        for name in trial.pod.requests:
            asked[name] = asked.get(name, 0) + scheduling.requested(trial.pod, name) * len(trial.tasks)
    for name, need in asked.items() if nodes else ():
        largest = max(scheduling.offers(node, name) for node in nodes)
        if any(scheduling.requested(trial.pod, name) > largest for trial in found.trials):
            continue  # told by `_misfits`
        have = sum(scheduling.offers(node, name) for node in nodes)
        if need > have:
            text = f"all tasks together ask for {scheduling.plain(need)} {name}, and all nodes together have"
            text = f"{text} {scheduling.plain(have)}: they cannot all run at once"
            yield Finding("warning", "nodes", text, "ask for less, or for fewer tasks: `--set worker=N`")


# --- quotas


def _quotas(found: Seen) -> Iterator[Finding]:
    demand = _demand(found)
    for quota in seen(found.evidence.quotas):
        for name, limit in quota.status.hard.items() if quota.is_for_all else ():
            need, most = demand.get(name), amount(limit)
            if need is not None and most is not None:
                yield from _of_quota(quota, name, need, most)


def _of_quota(quota: Quota, name: str, need: Decimal, most: Decimal) -> Iterator[Finding]:
    left = most - (amount(quota.status.used.get(name, 0)) or 0)
    if need <= left:
        return
    fix = f"ask for less, or `kubectl -n {quota.metadata.namespace} describe quota {quota.name}`"
    asked = f"the job asks for {_words(need)} of {name}, and quota {quota.name}"
    if need > most:
        yield Finding("wrong", QUOTA, f"{asked} allows {_words(most)}", fix)
    else:
        text = f"{asked} has {_words(left)} of {_words(most)} left: tasks wait until others have ended"
        yield Finding("warning", QUOTA, text, fix)


def _words(number: Decimal) -> str:
    return scheduling.plain(float(number))


def _demand(found: Seen) -> dict[str, Decimal]:
    """Of the whole job, by the names of a quota."""
    tasks = sum(len(trial.tasks) for trial in found.trials)
    claims = Decimal(len(found.created))
    total = {"pods": Decimal(tasks), "count/pods": Decimal(tasks), "count/tfjobs.kubeflow.org": Decimal(1)}
    total |= {"persistentvolumeclaims": claims, "count/persistentvolumeclaims": claims}
    sizes = [amount(claim.spec.resources.requests.get("storage", 0)) for claim in found.created]
    total["requests.storage"] = sum(filter(None, sizes), Decimal())
    for trial in found.trials:
        for name, each in _sizes(trial.pod).items():
            total[name] = total.get(name, Decimal()) + each * len(trial.tasks)
    return total


def _sizes(pod: Pod) -> dict[str, Decimal]:
    """What a pod counts for. Init containers end before the others begin, so the larger of both counts."""
    running: dict[str, Decimal] = {}
    for container in pod.spec.containers:
        for name, each in _amounts(container.resources.requests, container.resources.limits).items():
            running[name] = running.get(name, Decimal()) + each
    for container in pod.spec.init_containers:
        for name, each in _amounts(container.resources.requests, container.resources.limits).items():
            running[name] = max(running.get(name, Decimal()), each)
    return running


def _amounts(requests: dict[str, object], limits: dict[str, object]) -> dict[str, Decimal]:
    """Kubernetes takes limits for requests where those are missing; `cpu` is short for `requests.cpu`."""
    asked = {name: amount(value) or Decimal() for name, value in {**limits, **requests}.items()}
    short = {name: value for name, value in asked.items() if name in ("cpu", "memory", "ephemeral-storage")}
    most = {f"limits.{name}": amount(value) or Decimal() for name, value in limits.items()}
    return {**short, **{f"requests.{name}": value for name, value in asked.items()}, **most}


# --- claims


def _claims(found: Seen) -> Iterator[Finding]:
    created = {claim.name for claim in found.created}
    users: dict[str, list[str]] = {}
    for trial in found.trials:
        for name in trial.pod.claims:
            users.setdefault(name, []).extend(trial.tasks)
    known = {claim.name: claim for claim in seen(found.evidence.claims)}
    for name, tasks in users.items():
        if name in known:
            yield from _of_claim(found, known[name], tasks)
        elif name not in created and not isinstance(found.evidence.claims, Unreadable):
            fix = f"job file: `volumes: {{NAME: {{claim: {name}, size: 10Gi, at: PATH}}}}` creates it"
            where = f"there is no claim {name} in namespace {found.evidence.namespace}"
            yield Finding("wrong", f"claim {name}", where, fix)
    for claim in found.created:
        yield from _of_new_claim(found, claim)


def _of_claim(found: Seen, claim: Claim, tasks: Sequence[str]) -> Iterator[Finding]:
    subject, kubectl = f"claim {claim.name}", f"kubectl -n {found.evidence.namespace}"
    is_pending = claim.status.phase == "Pending" and not isinstance(found.evidence.classes, Unreadable)
    words = (
        volumes.no_class(claim.spec.storage_class_name, seen(found.evidence.classes)) if is_pending else ""
    )
    if claim.metadata.deletion_timestamp is not None:
        yield Finding("wrong", subject, "it is being deleted", "wait until it is gone, or use another claim")
    elif claim.status.phase == "Lost":
        yield Finding("wrong", subject, "its volume is lost", f"{kubectl} describe pvc {claim.name}")
    elif words:
        fix = f"{kubectl} delete pvc {claim.name}, and create it with another class"
        yield Finding("wrong", subject, f"it waits for a volume: {words}", fix)
    several = len(seen(found.evidence.nodes)) > 1 and len(tasks) > 1
    if several and set(claim.spec.access_modes) == {ONE}:
        text = f"{len(tasks)} tasks use it, and only one node may: it is {ONE}"
        fix = "a claim with `access: ReadWriteMany`; or all tasks on one node by `nodeSelector:`"
        yield Finding("warning", subject, text, fix)


def _of_new_claim(found: Seen, claim: Claim) -> Iterator[Finding]:
    classes = found.evidence.classes
    if isinstance(classes, Unreadable) or claim.spec.volume_name:
        return
    wanted, subject = claim.spec.storage_class_name, f"claim {claim.name}"
    if words := volumes.no_class(wanted, classes):
        fix = "job file: `storageClass:` of that volume"
        yield Finding("wrong", subject, f"no volume would be made for it: {words}", fix)
        return
    chosen = next(
        (each for each in classes if each.name == wanted or (wanted is None and each.is_default)), None
    )
    if chosen and MANY in claim.spec.access_modes and is_shared(chosen) is False:
        text = f"it asks for {MANY}, and volumes of the class {chosen.name} are for one node at a time"
        fix = "job file: `access: ReadWriteOnce`, or a `storageClass:` of a shared file system"
        yield Finding("warning", subject, text, fix)


# --- ConfigMaps and Secrets


def _missing(found: Seen) -> Iterator[Finding]:
    roles: dict[Missing, list[str]] = {}
    for each in found.missing:
        roles.setdefault(replace(each, role=""), []).append(each.role)
    for each, users in roles.items():
        text, fix = _absent(each, found.evidence.namespace)
        yield Finding("warning" if each.reference.is_for_pulling else "wrong", ", ".join(users), text, fix)


def _absent(missing: Missing, namespace: str) -> tuple[str, str]:
    """What is not there, and the command that creates it."""
    kind, name, kubectl = missing.reference.kind, missing.reference.name, f"kubectl -n {namespace}"
    if missing.keys:
        text = f"{kind} {name} has no key {', '.join(sorted(missing.keys))}"
        return text, f"{kubectl} edit {kind.lower()} {name}"
    if kind == PRIORITY_CLASS:
        return f"there is no PriorityClass {name}", "kubectl get priorityclasses"
    text = f"there is no {kind} {name} in namespace {namespace}"
    if kind == SERVICE_ACCOUNT:
        return text, f"{kubectl} create serviceaccount {name}"
    if missing.reference.is_for_pulling:
        text = f"{text}: images of a private registry could not be pulled"
        return text, f"{kubectl} create secret docker-registry {name} --docker-server=HOST …"
    word = "configmap" if kind == CONFIG_MAP else "secret generic"
    return text, f"{kubectl} create {word} {name} --from-file=FILE"
