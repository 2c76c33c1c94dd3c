"""Problems of a job that is about to be submitted: all of them at once, each with its fix."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from tfyard.model.quantity import amount
from tfyard.overview import references
from tfyard.overview.cause import Quote, cut, with_tasks
from tfyard.overview.causes import no_operator, refusals, scheduling, volumes
from tfyard.overview.doctor import Finding, Level
from tfyard.overview.evidence import NOT_ASKED, Evidence, Unreadable, seen
from tfyard.overview.fixes import spoken
from tfyard.overview.references import PRIORITY_CLASS, SERVICE_ACCOUNT, Reference
from tfyard.overview.storage_classes import MANY, ONE, is_shared
from tfyard.views.objects import Claim, Quota
from tfyard.views.pods import PodDetails

QUOTA = "quota"
TRANSIENT = ("cordoned", "node-state")
"""Kinds of causes that end by themselves or that an administrator ends: the job may wait for that."""
AUTOSCALED = "; submit it anyway if the cluster adds such nodes when they are needed"
COLLECTIONS = ("nodes", "quotas", "claims", "classes", "leases")


class TriedPod(Struct, frozen=True, kw_only=True):
    """The pod of a role's first task, as the server would store it."""

    role: str
    tasks: tuple[str, ...]
    pod: PodDetails
    refusal: str = ""
    """The server's error message, if it does not accept the pod."""


class MissingReference(Struct, frozen=True):
    """An object that a role refers to and that does not exist; with `keys`: it exists without these keys."""

    role: str
    reference: Reference
    keys: frozenset[str] = frozenset()


class Seen(Struct, frozen=True, kw_only=True):
    evidence: Evidence
    """Name and namespace of the job, and the collections that were listed."""
    trials: tuple[TriedPod, ...] = ()
    created: tuple[Claim, ...] = ()
    """Claims that are created with the job."""
    missing: tuple[MissingReference, ...] = ()
    has_other_operator: bool = False
    """Whether another operator than tfyard's works on TFJobs, or has to work on this one."""
    unread: tuple[str, ...] = ()


def findings(facts: Seen, now: datetime) -> list[Finding]:
    parts = (_operator(facts, now), _refusals(facts), _misfits(facts), _together(facts))
    findings = [each for part in (*parts, _quotas(facts), _claims(facts), _missing(facts)) for each in part]
    return [replace(each, fix=spoken(each.fix, facts.evidence.given_as)) for each in findings]


def unchecked(facts: Seen) -> list[str]:
    """What could not be checked, and why."""
    fields = {name: getattr(facts.evidence, name) for name in COLLECTIONS}
    unread = [each for each in fields.values() if isinstance(each, Unreadable) and each != NOT_ASKED]
    return [*(each.reason for each in unread), *facts.unread]


def _operator(facts: Seen, now: datetime) -> Iterator[Finding]:
    leases = facts.evidence.leases
    if facts.has_other_operator or isinstance(leases, Unreadable):
        return
    if not any(no_operator.is_led(lease, now) for lease in leases):
        words, fix = no_operator.absence(facts.evidence, now)
        yield Finding("wrong", "operator", f"no operator would run the job: {words}", f"`{fix}`")


# --- the server's answers to trial pods


def _refusals(facts: Seen) -> Iterator[Finding]:
    """Refusals by the server. `_quotas` reports a used up quota: it counts all pods, not only the first."""
    roles: dict[str, list[str]] = {}
    for trial in facts.trials:
        roles.setdefault(trial.refusal, []).append(trial.role)
    for message in filter(None, roles):
        cause = refusals.of_message(facts.evidence, message, Quote("apiserver", cut(message)))
        if cause.kind == QUOTA and not isinstance(facts.evidence.quotas, Unreadable):
            continue
        sentence = (
            f"the server refuses the pods: {cut(message)}" if cause.kind == "refused" else cause.sentence
        )
        level: Level = "warning" if cause.kind == QUOTA else "wrong"
        yield Finding(level, ", ".join(roles[message]), sentence, cause.fix)


# --- nodes


def _misfits(facts: Seen) -> Iterator[Finding]:
    nodes = facts.evidence.nodes
    if isinstance(nodes, Unreadable):
        return
    if not nodes:
        yield Finding(
            "warning", "nodes", "the cluster has no nodes: the job waits for some", "kubectl get nodes"
        )
        return
    for trial in facts.trials:
        if chosen := trial.pod.spec.node_name:  # without the scheduler, taints and labels do not matter
            if all(node.name != chosen for node in nodes):
                yield Finding("wrong", trial.role, f"there is no node {chosen}", "job file: `node:`")
        elif cause := scheduling.misfit(nodes, trial.pod):
            kind, sentence, fix = cause
            level: Level = "warning" if kind in TRANSIENT else "wrong"
            more = "" if kind in TRANSIENT else AUTOSCALED
            yield Finding(
                level, trial.role, with_tasks(sentence, trial.tasks), f"{fix}{more}".removeprefix("; ")
            )


def _together(facts: Seen) -> Iterator[Finding]:
    """Whether all tasks fit on the nodes at once: they wait for each other."""
    nodes, asked = seen(facts.evidence.nodes), dict[str, float]()
    for trial in facts.trials:
        for name in trial.pod.requests:
            asked[name] = asked.get(name, 0) + scheduling.requested(trial.pod, name) * len(trial.tasks)
    for name, need in asked.items() if nodes else ():
        largest = max(scheduling.offers(node, name) for node in nodes)
        if any(scheduling.requested(trial.pod, name) > largest for trial in facts.trials):
            continue  # `_misfits` reports it
        have = sum(scheduling.offers(node, name) for node in nodes)
        if need > have:
            text = f"all tasks together ask for {scheduling.plain(need)} {name}, and all nodes together have"
            text = f"{text} {scheduling.plain(have)}: they cannot all run at once"
            yield Finding("warning", "nodes", text, "ask for less, or for fewer tasks")


# --- quotas


def _quotas(facts: Seen) -> Iterator[Finding]:
    demand = _demand(facts)
    for quota in seen(facts.evidence.quotas):
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


def _demand(facts: Seen) -> dict[str, Decimal]:
    """Resources of the whole job, by the names that quotas have for them."""
    tasks = sum(len(trial.tasks) for trial in facts.trials)
    claims = Decimal(len(facts.created))
    total = {"pods": Decimal(tasks), "count/pods": Decimal(tasks), "count/tfjobs.kubeflow.org": Decimal(1)}
    total |= {"persistentvolumeclaims": claims, "count/persistentvolumeclaims": claims}
    sizes = [amount(claim.spec.resources.requests.get("storage", 0)) for claim in facts.created]
    total["requests.storage"] = sum(filter(None, sizes), Decimal())
    for trial in facts.trials:
        for name, size in _sizes(trial.pod).items():
            total[name] = total.get(name, Decimal()) + size * len(trial.tasks)
    return total


def _sizes(pod: PodDetails) -> dict[str, Decimal]:
    """Resources that a pod counts for: init containers end before the others start, so the larger of both."""
    running: dict[str, Decimal] = {}
    for container in pod.spec.containers:
        for name, size in _amounts(container.resources.requests, container.resources.limits).items():
            running[name] = running.get(name, Decimal()) + size
    for container in pod.spec.init_containers:
        for name, size in _amounts(container.resources.requests, container.resources.limits).items():
            running[name] = max(running.get(name, Decimal()), size)
    return running


def _amounts(requests: dict[str, object], limits: dict[str, object]) -> dict[str, Decimal]:
    """Kubernetes takes limits for requests where those are missing; `cpu` is short for `requests.cpu`."""
    asked = {name: amount(value) or Decimal() for name, value in {**limits, **requests}.items()}
    short = {name: value for name, value in asked.items() if name in ("cpu", "memory", "ephemeral-storage")}
    most = {f"limits.{name}": amount(value) or Decimal() for name, value in limits.items()}
    return {**short, **{f"requests.{name}": value for name, value in asked.items()}, **most}


# --- claims


def _claims(facts: Seen) -> Iterator[Finding]:
    created = {claim.name for claim in facts.created}
    users: dict[str, list[str]] = {}
    for trial in facts.trials:
        for name in trial.pod.claims:
            users.setdefault(name, []).extend(trial.tasks)
    known = {claim.name: claim for claim in seen(facts.evidence.claims)}
    for name, tasks in users.items():
        if name in known:
            yield from _of_claim(facts, known[name], tasks)
        elif name not in created and not isinstance(facts.evidence.claims, Unreadable):
            fix = f"job file: `volumes: {{NAME: {{claim: {name}, size: 10Gi, at: PATH}}}}` creates it"
            where = f"there is no claim {name} in namespace {facts.evidence.namespace}"
            yield Finding("wrong", f"claim {name}", where, fix)
    for claim in facts.created:
        yield from _of_new_claim(facts, claim)


def _of_claim(facts: Seen, claim: Claim, tasks: Sequence[str]) -> Iterator[Finding]:
    subject, kubectl = f"claim {claim.name}", f"kubectl -n {facts.evidence.namespace}"
    is_pending = claim.status.phase == "Pending" and not isinstance(facts.evidence.classes, Unreadable)
    words = (
        volumes.no_class(claim.spec.storage_class_name, seen(facts.evidence.classes)) if is_pending else ""
    )
    if claim.metadata.deletion_timestamp is not None:
        yield Finding("wrong", subject, "it is being deleted", "wait until it is gone, or use another claim")
    elif claim.status.phase == "Lost":
        yield Finding("wrong", subject, "its volume is lost", f"{kubectl} describe pvc {claim.name}")
    elif words:
        fix = f"{kubectl} delete pvc {claim.name}, and create it with another class"
        yield Finding("wrong", subject, f"it waits for a volume: {words}", fix)
    several = len(seen(facts.evidence.nodes)) > 1 and len(tasks) > 1
    if several and set(claim.spec.access_modes) == {ONE}:
        text = f"{len(tasks)} tasks use it, and only one node may: it is {ONE}"
        fix = "a claim with `access: ReadWriteMany`; or all tasks on one node by `nodeSelector:`"
        yield Finding("warning", subject, text, fix)


def _of_new_claim(facts: Seen, claim: Claim) -> Iterator[Finding]:
    classes = facts.evidence.classes
    if isinstance(classes, Unreadable) or claim.spec.volume_name:
        return
    class_name, subject = claim.spec.storage_class_name, f"claim {claim.name}"
    if words := volumes.no_class(class_name, classes):
        fix = "job file: `storageClass:` of that volume"
        yield Finding("wrong", subject, f"no volume would be made for it: {words}", fix)
        return
    chosen = next(
        (each for each in classes if each.name == class_name or (class_name is None and each.is_default)),
        None,
    )
    if chosen and MANY in claim.spec.access_modes and is_shared(chosen) is False:
        text = f"it asks for {MANY}, and volumes of the class {chosen.name} are for one node at a time"
        fix = "job file: `access: ReadWriteOnce`, or a `storageClass:` of a shared file system"
        yield Finding("warning", subject, text, fix)


# --- ConfigMaps and Secrets


def _missing(facts: Seen) -> Iterator[Finding]:
    roles: dict[MissingReference, list[str]] = {}
    for missing in facts.missing:
        roles.setdefault(replace(missing, role=""), []).append(missing.role)
    for missing, users in roles.items():
        text, fix = _absent(missing, facts.evidence.namespace)
        yield Finding("warning" if missing.reference.is_for_pulling else "wrong", ", ".join(users), text, fix)


def _absent(missing: MissingReference, namespace: str) -> tuple[str, str]:
    """The text about a missing object, and the command that creates it."""
    kind, name, kubectl = missing.reference.kind, missing.reference.name, f"kubectl -n {namespace}"
    if missing.keys:
        text = f"{kind} {name} has no key {', '.join(sorted(missing.keys))}"
        return text, references.addition(namespace, missing.reference, missing.keys)
    if kind == PRIORITY_CLASS:
        return f"there is no PriorityClass {name}", "kubectl get priorityclasses"
    text = f"there is no {kind} {name} in namespace {namespace}"
    if kind == SERVICE_ACCOUNT:
        return text, f"{kubectl} create serviceaccount {name}"
    if missing.reference.is_for_pulling:
        text = f"{text}: images of a private registry could not be pulled"
        return text, f"{kubectl} create secret docker-registry {name} --docker-server=HOST …"
    return text, references.creation(namespace, missing.reference)
