"""Causes of jobs without an operator: there is none, it does not run, or the job belongs to another one."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from tfyard.formats.crd.status import missing_memory
from tfyard.model import Manifest
from tfyard.overview.cause import Cause, Quote
from tfyard.overview.evidence import Evidence, Unreadable, seen
from tfyard.overview.wording import duration
from tfyard.planner.decide import OURS
from tfyard.views.objects import Lease

PATIENCE = timedelta(seconds=10)
"""Time within which a running operator has seen a new job."""
LEASE_SECONDS = 15
"""Duration of a lease that has none in its spec."""
MISSED_LEASES = 2
"""An operator that has not renewed its lease for so many of its lengths does not run."""

LEADER_CHANGE = timedelta(seconds=15)
"""A leader that ends releases its lease; another operator takes it, or starts and takes it, within this time."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    status = evidence.status
    if evidence.is_local or status.is_finished or evidence.status_problem or not _is_due(evidence, now):
        return
    manager = (evidence.spec.get("runPolicy") or {}).get("managedBy")
    if manager and _is_other(str(manager)):
        yield _managed_by(str(manager))
    elif (status.conditions or evidence.tasks) and _is_seen(evidence):
        yield from _died(evidence, now)
    else:
        yield _no_operator(evidence, now)


def _is_other(manager: str) -> bool:
    return manager != OURS


def _is_due(evidence: Evidence, now: datetime) -> bool:
    return evidence.created is not None and now - evidence.created >= PATIENCE


def _is_seen(evidence: Evidence) -> bool:
    """Whether the operator has seen the present spec; without observedGeneration, conditions or pods show it."""
    known = evidence.status.observed_generation
    return known is None or known >= evidence.generation


def _managed_by(manager: str) -> Cause:
    text = f"spec.runPolicy.managedBy: {manager}"
    sentence = (
        f"another controller is to run it: managedBy is {manager}, so tfyard's operator leaves it alone"
    )
    return Cause(
        kind="managed-by", sentence=sentence, fix=f"remove `{text}`", evidence=(Quote("apiserver", text),)
    )


def _no_operator(evidence: Evidence, now: datetime) -> Cause:
    age = duration((now - evidence.created).total_seconds()) if evidence.created else "?"
    quote = Quote(
        "apiserver", f"the TFJob exists for {age}, and its status has no condition", evidence.created
    )
    if evidence.status.conditions:
        quote = Quote("apiserver", "the last change of its spec is not in its status yet", evidence.created)
    words, fix = absence(evidence, now)
    sentence = f"no operator works on it: {words}" if words else "no operator works on it"
    return Cause(kind="no-operator", sentence=sentence, fix=fix, evidence=(quote,))


def absence(evidence: Evidence, now: datetime) -> tuple[str, str]:
    """Why no operator reconciles the job, by the leases and the CRD, and the fix."""
    install = "tfyard install"
    led = [lease for lease in seen(evidence.leases) if is_led(lease, now)]
    is_alive, is_held = bool(led), any(lease.spec.holder_identity for lease in led)
    foreign = [each["metadata"]["name"] for each in seen(evidence.definitions) if missing_memory(each)]
    if foreign and not is_alive:
        return f"the CRD {foreign[0]} is not tfyard's, so tfyard's operator does not start", install
    installed = next(iter(seen(evidence.operators)), None)
    if not is_held and installed and (unready := not_ready(installed)):
        return f"the tfyard operator is installed, and {unready[0]}", unready[1]
    if is_alive or installed:
        fix = f"add {evidence.namespace} to the operator's --namespaces, or look into its log"
        return "the operator runs; does it watch this namespace?", fix
    if isinstance(evidence.leases, Unreadable):
        return "", install
    if not evidence.leases:
        return "no tfyard operator is installed in this cluster", install
    return "the tfyard operator is installed, but does not run", install


def not_ready(deployment: Manifest) -> tuple[str, str] | None:
    """Why no pod of an operator's Deployment is ready, and the fix; None: one is."""
    metadata, replicas = deployment["metadata"], deployment["spec"].get("replicas", 1)
    kubectl = f"kubectl -n {metadata['namespace']}"
    if (deployment.get("status") or {}).get("readyReplicas"):
        return None
    if not replicas:
        return "it is scaled to zero", f"{kubectl} scale deployment {metadata['name']} --replicas=1"
    selector = ",".join(
        f"{key}={value}" for key, value in deployment["spec"]["selector"]["matchLabels"].items()
    )
    return f"none of its {replicas} pods is ready", f"{kubectl} describe pods -l {selector}"


def _died(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """The cause of a job whose operator has ended, if the lease proves that."""
    leases = seen(evidence.leases)
    if leases and not any(is_led(lease, now) for lease in leases):
        lease = max(
            leases, key=lambda each: each.spec.renew_time.timestamp() if each.spec.renew_time else 0.0
        )
        quote = Quote(
            "apiserver",
            f"Lease {lease.metadata.namespace}/{lease.name} is not renewed",
            lease.spec.renew_time,
        )
        sentence = "the operator no longer runs: tasks are not restarted, and their end is not recorded"
        unready = [reason for each in seen(evidence.operators) if (reason := not_ready(each))]
        fix = f"kubectl -n {lease.metadata.namespace} get pods; then `tfyard install`"
        fix = unready[0][1] if unready else fix
        yield Cause(kind="no-operator", sentence=sentence, fix=fix, evidence=(quote,))


def is_led(lease: Lease, now: datetime) -> bool:
    """An operator holds the lease, or has released it so recently that the next one is about to take it."""
    spec = lease.spec
    if spec.renew_time is None:
        return False
    if not spec.holder_identity:
        return now - spec.renew_time <= LEADER_CHANGE
    return now - spec.renew_time <= MISSED_LEASES * timedelta(
        seconds=spec.lease_duration_seconds or LEASE_SECONDS
    )
