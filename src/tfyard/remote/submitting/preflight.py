"""Looks whether a job can run in a cluster before it is submitted. What may not be looked at is noted and stops
nothing. No more is asked than the job needs: nodes, quotas and leases always, the rest if it refers to it."""

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.kube import AlreadyExists, Forbidden, NotFound, Resource, Unauthorized, Unreachable, requests
from tfyard.kube.errors import Answered
from tfyard.kube.sync import SyncClient
from tfyard.model import Job, Manifest, Role
from tfyard.overview import references
from tfyard.overview.evidence import NOT_ASKED, Evidence, Unreadable, seen
from tfyard.overview.preflight import MissingReference, Seen, TriedPod
from tfyard.overview.references import CONFIG_MAP, PRIORITY_CLASS, SECRET, SERVICE_ACCOUNT, Reference
from tfyard.planner import Site
from tfyard.planner.decide import OURS
from tfyard.planner.job_setup import Setup
from tfyard.planner.pods import builder
from tfyard.planner.tf_config import roster
from tfyard.remote.installing import doctor
from tfyard.remote.reading import evidence
from tfyard.views.objects import Claim
from tfyard.views.pods import PodDetails

TRIAL = {"dryRun": "All", "fieldValidation": "Strict"}
PLACES = {
    CONFIG_MAP: requests.CONFIG_MAPS,
    SECRET: requests.SECRETS,
    SERVICE_ACCOUNT: requests.SERVICE_ACCOUNTS,
    PRIORITY_CLASS: Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
}
_PODS = msgspec.json.Decoder(PodDetails)
_MAY_NOT = r'cannot create resource "pods"'
"""The user may not create pods; other refusals of the same code are about the pod."""


_UNSEEN = ("you may not list deployments, which would say whether an operator runs",)


class NoNamespace(TfyardError):
    pass


class _Tried(Struct, frozen=True):
    trials: tuple[TriedPod, ...]
    unread: tuple[str, ...]


def look(client: SyncClient, job: Job, beside: Sequence[Manifest], known: Evidence) -> Seen:
    """`beside`: the objects that are created with the job; `known`: what was looked at already."""
    manifests = {role.name.lower(): first_pod(job, role) for role in job.roles if role.replicas}
    tried = _try(client, job, manifests)
    gathered = _collections(client, known, tried.trials, beside)
    needed = _references(manifests, _names(beside), untried=bool(tried.unread))
    missing, unread = _missing(client, job.namespace, needed)
    there = {claim.name for claim in seen(gathered.claims)}
    claims = [msgspec.convert(each, Claim) for each in beside if each["kind"] == "PersistentVolumeClaim"]
    others = _other_operators(client, job, gathered)
    if not gathered.leases and not others:
        gathered = evidence.with_collections(client, gathered, {"operators"})
    return Seen(
        evidence=gathered,
        trials=tried.trials,
        created=tuple(claim for claim in claims if claim.name not in there),
        missing=missing,
        has_other_operator=others is None or others,
        unread=(*tried.unread, *unread, *(_UNSEEN if others is None else ())),
    )


def first_pod(job: Job, role: Role) -> Manifest:
    """First pod of a role, as the operator would create it."""
    setup = Setup()
    build = builder(job, role, roster(job, setup), Site(), (), hostnames=job.size > 1)
    return build(0, 0)


def _names(beside: Sequence[Manifest]) -> set[tuple[str, str]]:
    return {(str(each["kind"]), str(each["metadata"]["name"])) for each in beside}


def _collections(
    client: SyncClient, known: Evidence, trials: Sequence[TriedPod], beside: Sequence[Manifest]
) -> Evidence:
    fields = {"nodes", "quotas", "leases"}
    kinds = {kind for kind, _ in _names(beside)}
    if "PersistentVolumeClaim" in kinds or any(trial.pod.claims for trial in trials):
        fields |= {"claims", "classes"}
    unknown = {field for field in fields if getattr(known, field) == NOT_ASKED}
    return evidence.with_collections(client, known, unknown)


# --- the server's opinion of a pod


def _try(client: SyncClient, job: Job, manifests: dict[str, Manifest]) -> _Tried:
    trials, unread = [], ""
    for role in job.roles:
        if role.replicas:
            pod, refusal = _admitted(client, job.namespace, manifests[role.name.lower()])
            if re.search(_MAY_NOT, refusal):
                refusal, unread = "", "you may not create pods, so none was tried"
            tasks = tuple(task.name for task in role.tasks())
            trials.append(TriedPod(role=role.name.lower(), tasks=tasks, pod=pod, refusal=refusal))
    return _Tried(tuple(trials), (unread,) if unread else ())


def _admitted(client: SyncClient, namespace: str, manifest: Manifest) -> tuple[PodDetails, str]:
    """The pod with what admission adds to it (limits, tolerations), or why it is refused."""
    try:
        return client.send(requests.create(requests.PODS.path(namespace), manifest, TRIAL), _PODS), ""
    except AlreadyExists:
        refusal = ""  # of a job that runs: admission has accepted it before
    except NotFound as problem:
        if (problem.status.details or {}).get("kind") == "namespaces":
            fix = f"`kubectl create namespace {namespace}`, or choose one with -n"
            raise NoNamespace(f"there is no namespace {namespace}; {fix}") from None
        refusal = problem.status.message
    except (Unreachable, Unauthorized):
        raise  # about the connection or the user, not about the pod
    except Answered as problem:
        refusal = problem.status.message
    return msgspec.convert(manifest, PodDetails), refusal


# --- what pods refer to


def _references(
    manifests: dict[str, Manifest], created: set[tuple[str, str]], *, untried: bool
) -> list[tuple[str, Reference]]:
    """References of each role. Whether accounts and priorities exist is known from a trial, if there was one."""
    needed = []
    for role, manifest in manifests.items():
        spec = manifest["spec"]
        named = [*references.of_pod(spec), *(references.of_admission(spec) if untried else ())]
        needed += [(role, each) for each in named if (each.kind, each.name) not in created]
    return needed


def _missing(
    client: SyncClient, namespace: str, needed: list[tuple[str, Reference]]
) -> tuple[tuple[MissingReference, ...], list[str]]:
    """Missing objects, and what could not be read. Each object is asked for once."""
    answers: dict[tuple[str, str], frozenset[str] | Unreadable | None] = {}
    missing, keys = list[MissingReference](), dict[tuple[str, str], frozenset[str]]()
    for _, each in needed:
        keys[each.kind, each.name] = keys.get((each.kind, each.name), frozenset()) | each.keys
    for role, reference in needed:
        key = reference.kind, reference.name
        if key not in answers:
            answers[key] = _keys(client, namespace, reference)
        missing += _compared(role, replace(reference, keys=keys[key]), answers[key])
    unread = {each.reason for each in answers.values() if isinstance(each, Unreadable)}
    return tuple(missing), sorted(unread)


def _compared(
    role: str, reference: Reference, keys: frozenset[str] | Unreadable | None
) -> Iterator[MissingReference]:
    if keys is None:
        yield MissingReference(role, reference)
    elif not isinstance(keys, Unreadable) and (absent := reference.keys - keys):
        yield MissingReference(role, replace(reference, keys=frozenset()), absent)


def _keys(client: SyncClient, namespace: str, reference: Reference) -> frozenset[str] | Unreadable | None:
    """Keys of the object; None: it does not exist."""
    try:
        manifest = client.find(PLACES[reference.kind].path(namespace, reference.name))
    except Forbidden:
        return Unreadable(f"you may not get {PLACES[reference.kind].plural}")
    if manifest is None:
        return None
    return frozenset({**(manifest.get("data") or {}), **(manifest.get("binaryData") or {})})


# --- operators that would work on it


def _other_operators(client: SyncClient, job: Job, gathered: Evidence) -> bool | None:
    """Whether another operator runs jobs, if tfyard's has no lease. None: Deployments may not be read."""
    if job.run_policy.managed_by not in (None, "", OURS):
        return True
    if isinstance(gathered.leases, Unreadable) or gathered.leases:
        return False
    try:
        return any(finding.level == "ok" for finding in doctor.operators(client))
    except Answered:
        return None
