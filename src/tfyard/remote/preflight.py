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
from tfyard.overview.objects import Claim, Pod
from tfyard.overview.preflight import Missing, Seen, Trial
from tfyard.overview.references import CONFIG_MAP, PRIORITY_CLASS, SECRET, SERVICE_ACCOUNT, Reference
from tfyard.planner import Site
from tfyard.planner.decide import OURS
from tfyard.planner.job_setup import Setup
from tfyard.planner.pods import builder
from tfyard.planner.tf_config import roster

from . import doctor, evidence

TRIAL = {"dryRun": "All", "fieldValidation": "Strict"}
PLACES = {
    CONFIG_MAP: requests.CONFIG_MAPS,
    SECRET: requests.SECRETS,
    SERVICE_ACCOUNT: requests.SERVICE_ACCOUNTS,
    PRIORITY_CLASS: Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
}
_PODS = msgspec.json.Decoder(Pod)
_MAY_NOT = r'cannot create resource "pods"'
"""The user may not; other refusals of the same code are about the pod."""


_UNSEEN = ("you may not list deployments, which would say whether an operator runs",)


class NoNamespace(TfyardError):
    pass


class _Tried(Struct, frozen=True):
    trials: tuple[Trial, ...]
    unread: tuple[str, ...]


def look(client: SyncClient, job: Job, beside: Sequence[Manifest], known: Evidence) -> Seen:
    """`beside`: the objects that are created with the job; `known`: what was looked at already."""
    manifests = {role.name.lower(): first_pod(job, role) for role in job.roles if role.replicas}
    tried = _try(client, job, manifests)
    found = _collections(client, known, tried.trials, beside)
    wanted = _references(manifests, _names(beside), untried=bool(tried.unread))
    missing, unread = _missing(client, job.namespace, wanted)
    there = {claim.name for claim in seen(found.claims)}
    claims = [msgspec.convert(each, Claim) for each in beside if each["kind"] == "PersistentVolumeClaim"]
    others = _other_operators(client, job, found)
    return Seen(
        evidence=found,
        trials=tried.trials,
        created=tuple(claim for claim in claims if claim.name not in there),
        missing=missing,
        has_other_operator=others is None or others,
        unread=(*tried.unread, *unread, *(_UNSEEN if others is None else ())),
    )


def first_pod(job: Job, role: Role) -> Manifest:
    """As the operator would create it."""
    setup = Setup()
    build = builder(job, role, roster(job, setup), Site(), (), hostnames=job.size > 1)
    return build(0, 0)


def _names(beside: Sequence[Manifest]) -> set[tuple[str, str]]:
    return {(str(each["kind"]), str(each["metadata"]["name"])) for each in beside}


def _collections(
    client: SyncClient, known: Evidence, trials: Sequence[Trial], beside: Sequence[Manifest]
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
            trials.append(Trial(role=role.name.lower(), tasks=tasks, pod=pod, refusal=refusal))
    return _Tried(tuple(trials), (unread,) if unread else ())


def _admitted(client: SyncClient, namespace: str, manifest: Manifest) -> tuple[Pod, str]:
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
        raise  # about us, not about the pod
    except Answered as problem:
        refusal = problem.status.message
    return msgspec.convert(manifest, Pod), refusal


# --- what pods refer to


def _references(
    manifests: dict[str, Manifest], created: set[tuple[str, str]], *, untried: bool
) -> list[tuple[str, Reference]]:
    """Of each role. That accounts and priorities exist is told by trying a pod, unless that was not possible."""
    found = []
    for role, manifest in manifests.items():
        spec = manifest["spec"]
        named = [*references.of_pod(spec), *(references.of_admission(spec) if untried else ())]
        found += [(role, each) for each in named if (each.kind, each.name) not in created]
    return found


def _missing(
    client: SyncClient, namespace: str, wanted: list[tuple[str, Reference]]
) -> tuple[tuple[Missing, ...], list[str]]:
    """What is not there, and what could not be looked at. Each object is asked for once."""
    answers: dict[tuple[str, str], frozenset[str] | Unreadable | None] = {}
    found = list[Missing]()
    for role, reference in wanted:
        key = reference.kind, reference.name
        if key not in answers:
            answers[key] = _keys(client, namespace, reference)
        found += _compared(role, reference, answers[key])
    unread = {each.reason for each in answers.values() if isinstance(each, Unreadable)}
    return tuple(found), sorted(unread)


def _compared(role: str, reference: Reference, keys: frozenset[str] | Unreadable | None) -> Iterator[Missing]:
    if keys is None:
        yield Missing(role, replace(reference, keys=frozenset()))
    elif not isinstance(keys, Unreadable) and (absent := reference.keys - keys):
        yield Missing(role, replace(reference, keys=frozenset()), absent)


def _keys(client: SyncClient, namespace: str, reference: Reference) -> frozenset[str] | Unreadable | None:
    """None: it does not exist."""
    try:
        found = client.send(requests.get(PLACES[reference.kind].path(namespace, reference.name)))
    except NotFound:
        return None
    except Forbidden:
        return Unreadable(f"you may not get {PLACES[reference.kind].plural}")
    return frozenset({**(found.get("data") or {}), **(found.get("binaryData") or {})})


# --- who would work on it


def _other_operators(client: SyncClient, job: Job, found: Evidence) -> bool | None:
    """Asked only if tfyard's operator has no lease: Kubeflow's runs jobs, too. None: it may not be seen."""
    if job.run_policy.managed_by not in (None, "", OURS):
        return True
    if isinstance(found.leases, Unreadable) or found.leases:
        return False
    try:
        return any(finding.level == "ok" for finding in doctor.operators(client))
    except Answered:
        return None
