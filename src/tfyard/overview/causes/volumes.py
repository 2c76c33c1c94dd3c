"""Causes of volumes that cannot be used: a claim is missing or not bound, or a mount fails."""

import re
from collections.abc import Sequence

from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.causes import start
from tfyard.overview.evidence import Evidence, Unreadable, seen
from tfyard.views.objects import Claim, EventView, StorageClass
from tfyard.views.pods import PodDetails

CLAIM_PATTERN = (
    r'persistentvolumeclaims? "[^"]+" (?:not found|is being deleted)|unbound immediate PersistentVolumeClaims'
)
_MISSING = r'persistentvolumeclaims? "([^"]+)" not found'
_MOUNT = r'(?s)Mount\w+(?:\.\w+)* failed for volume "(?P<volume>[^"]+)" : (?P<what>.*)'
_OUTPUT = r"(?s)Output: (.*)"
_VAGUE = "Unable to attach or mount volumes"
"""Beginning of the kubelet's summary of earlier, more detailed messages."""
CLAIM_TROUBLE = ("ProvisioningFailed", "FailedBinding", "VolumeMismatch", "ClaimLost", "ClaimMisbound")


def mounting(evidence: Evidence, pod: PodDetails) -> Cause | None:
    """The cause of a volume that is not mounted, by warnings of the kubelet and the attach controller."""
    events = evidence.warnings(pod, "FailedMount", "FailedAttachVolume", "FailedMapVolume")
    if not events:
        return None
    event = next((each for each in events if not each.message.startswith(_VAGUE)), events[0])
    return of_message(evidence, pod, event.message, Quote("event", cut(event.message), event.at))


def of_message(evidence: Evidence, pod: PodDetails, message: str, quote: Quote) -> Cause:
    if "Multi-Attach error" in message:
        return _multi_attach(pod, quote)
    if re.search(r'(?:configmap|secret) "[^"]+" not found|non-existent (?:config|secret) key', message):
        return start.of_config(evidence, pod, message, quote)
    if re.search(_MISSING, message):
        return of_claim(evidence, pod, message, quote)
    failure = re.search(_MOUNT, message)
    if failure is None:
        return Cause(
            kind="mount",
            sentence=f"{TASKS} cannot mount a volume: {cut(message)}",
            tasks=(pod.task,),
            evidence=(quote,),
        )
    output = re.search(_OUTPUT, failure["what"])
    words = cut(output[1] if output else failure["what"], 240)
    sentence = f"{TASKS} cannot mount volume {failure['volume']}{_source(pod, failure['volume'])}: {words}"
    fix = _mount_fix(failure["what"])
    return Cause(kind="mount", sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))


def _source(pod: PodDetails, name: str) -> str:
    """Server and path of an NFS volume, or the name of its claim, for a sentence."""
    volume = next((each for each in pod.spec.volumes if each.get("name") == name), {})
    if nfs := volume.get("nfs"):
        return f" (nfs {nfs.get('server')}:{nfs.get('path')})"
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
    return f" (claim {claim})" if claim else ""


def _mount_fix(output: str) -> str:
    if re.search(r"No such file|does not exist|access denied by server", output):
        return "check that the server exports this path to the nodes"
    if re.search(r"timed out|Connection refused|No route|not known|Failed to resolve", output):
        return "check the server's name, and that the nodes can reach it"
    if "bad option" in output or "need a /sbin/mount" in output:
        return "the nodes lack the mount program (nfs-common, cifs-utils): ask the cluster's administrator"
    return ""


def _multi_attach(pod: PodDetails, quote: Quote) -> Cause:
    claims = ", ".join(pod.claims) or "a claim"
    return Cause(
        kind="multi-attach",
        sentence=f"{TASKS} cannot use {claims}: another node has the volume, and only one may have it",
        fix="job file: a claim with `access: ReadWriteMany`; or all tasks on one node by `nodeSelector:`",
        tasks=(pod.task,),
        evidence=(quote,),
    )


def of_claim(evidence: Evidence, pod: PodDetails, message: str, quote: Quote) -> Cause:
    """The cause of a claim that is missing or not bound: the scheduler reports that, the claim has the reason."""
    if missing := re.search(_MISSING, message):
        sentence = f"{TASKS} cannot start: there is no claim {missing[1]} in namespace {evidence.namespace}"
        fix = f"job file: `volumes: {{NAME: {{claim: {missing[1]}, size: 10Gi, at: PATH}}}}` creates it"
        return Cause(kind="claim-missing", sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))
    claim = next(
        (c for c in seen(evidence.claims) if c.name in pod.claims and c.status.phase != "Bound"), None
    )
    if claim is None:
        names = ", ".join(pod.claims) or "a claim"
        sentence, fix = (
            f"{TASKS} cannot start: {names} is not bound to a volume",
            f"kubectl -n {evidence.namespace} get pvc",
        )
        return Cause(kind="claim-pending", sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))
    return _pending(evidence, pod, claim, quote)


def _pending(evidence: Evidence, pod: PodDetails, claim: Claim, quote: Quote) -> Cause:
    events = evidence.events_of("PersistentVolumeClaim", claim.name)
    trouble = next((event for event in events if event.reason in CLAIM_TROUBLE), None)
    words, fix = _unbound(evidence, claim, trouble)
    quotes = (Quote("event", cut(trouble.message), trouble.at), quote) if trouble else (quote,)
    return Cause(
        kind="claim-pending",
        sentence=f"{TASKS} cannot start: claim {claim.name} waits for a volume, because {words}",
        fix=fix or f"kubectl -n {evidence.namespace} describe pvc {claim.name}",
        tasks=(pod.task,),
        evidence=quotes,
    )


def _unbound(evidence: Evidence, claim: Claim, trouble: EventView | None) -> tuple[str, str]:
    name = claim.spec.storage_class_name
    if not isinstance(evidence.classes, Unreadable) and (words := no_class(name, evidence.classes)):
        names = sorted(each.name for each in evidence.classes)
        delete = f"kubectl -n {evidence.namespace} delete pvc {claim.name}"
        return words, f"{delete}; then job file: `storageClass: {names[0]}`" if names else ""
    return (cut(trouble.message, 240) if trouble else "no volume was made for it yet"), ""


def no_class(name: str | None, classes: Sequence[StorageClass]) -> str:
    """Why no storage class makes a volume for a claim; empty: one does, or the claim is for an existing volume."""
    names = sorted(each.name for each in classes)
    there = f"there are: {', '.join(names)}" if names else "there is none in this cluster"
    if name and name not in names:
        return f"storage class {name} does not exist; {there}"
    if name is None and not any(each.is_default for each in classes):
        return f"it names no storage class, and no class is the default; {there}"
    return ""
