"""What `doctor` concludes from the objects of a cluster: each finding is ok, a warning or wrong, with its fix."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

import msgspec
from msgspec import Struct

from tfyard.model import Manifest
from tfyard.model.names import JOB_NAME
from tfyard.model.quantity import amount
from tfyard.overview.causes.nobody import LEASE_SECONDS, MISSED_LEASES
from tfyard.overview.objects import Definition
from tfyard.overview.wording import age

Level = Literal["ok", "warning", "wrong"]
OLDEST = (1, 30)
"""The first Kubernetes whose rules can do what the CRDs need."""
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
SERVICE_NAME = "kubernetes.io/service-name"
NEARLY_USED = Decimal("0.9")
MOST_HOLDERS = 5


class Finding(Struct, frozen=True, omit_defaults=True):
    level: Level
    subject: str
    text: str
    fix: str = ""


def version(found: Manifest, server: str) -> Finding:
    text = f"{server} is Kubernetes {found.get('gitVersion', '?')}"
    numbers = tuple(int(re.sub(r"\D", "", str(found.get(part) or "0")) or 0) for part in ("major", "minor"))
    if numbers < OLDEST:
        return Finding("wrong", "server", text, "TFJob's CRDs need Kubernetes 1.30 or newer")
    return Finding("ok", "server", text)


def definition(crd: Manifest) -> Finding:
    """Who keeps the CRD, and which versions it serves."""
    served = [each["name"] for each in crd["spec"]["versions"] if each.get("served")]
    managers = {each.get("manager", "") for each in crd["metadata"].get("managedFields") or []}
    ours = sorted(each for each in managers if each.startswith("tfyard"))
    others = sorted(managers - {*ours, "kube-apiserver", ""})
    name = crd["metadata"]["name"]
    text = f"{name} serves {', '.join(served)}; applied by {', '.join(ours or others) or 'an unknown tool'}"
    if msgspec.convert(crd, Definition, strict=False).is_tfyards:
        return Finding("ok", "crd", text)
    fix = "`tfyard install` upgrades it; without that the operator cannot keep its memory"
    return Finding("warning", "crd", f"{text}; it is not tfyard's", fix)


def lease(found: Sequence[Manifest], now: datetime) -> Finding:
    """The leader renews it every few seconds."""
    if not found:
        return Finding("warning", "leader", "tfyard's operator has never run here")
    specs = [(each["metadata"]["namespace"], each.get("spec") or {}) for each in found]
    held = [(where, spec) for where, spec in specs if spec.get("holderIdentity") and spec.get("renewTime")]
    if not held:
        return Finding(
            "wrong", "leader", "no operator is the leader", "`tfyard install`, or look at its pods"
        )
    renewed, where, spec = max((_time(spec["renewTime"]), where, spec) for where, spec in held)
    silent = (now - renewed).total_seconds()
    text = f"{spec['holderIdentity']} in the namespace {where}, renewed {age(silent)} ago"
    if silent > MISSED_LEASES * float(spec.get("leaseDurationSeconds") or LEASE_SECONDS):
        fix = f"`kubectl -n {where} get pods` shows whether the operator runs"
        return Finding("wrong", "leader", f"{text}: the operator does not run", fix)
    return Finding("ok", "leader", text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def nodes(found: Sequence[Manifest]) -> Finding:
    ready = [each for each in found if _is_ready(each)]
    text = f"{len(ready)} of {len(found)} nodes are ready"
    if not ready:
        return Finding("wrong", "nodes", text, "`kubectl get nodes` and `kubectl describe node NAME` say why")
    return Finding("ok" if len(ready) == len(found) else "warning", "nodes", text)


def gpus(found: Sequence[Manifest], pods: Sequence[Manifest] | None) -> Finding:
    """How many there are, and who holds them. `pods`: None if they may not be listed."""
    offered = sum((_gpus((each.get("status") or {}).get("allocatable")) for each in found), Decimal())
    if not offered:
        fix = "if the nodes have some, their device plugin does not run"
        return Finding("ok", "gpus", f"no node offers GPUs; {fix}")
    if pods is None:
        return Finding("ok", "gpus", f"{offered} on the nodes; who holds them may not be seen")
    held = Counter[str]()
    for pod in pods:
        held[_holder(pod)] += int(_requested(pod))
    held = +held
    text = f"{offered} on the nodes, {held.total()} in use, {offered - held.total()} free"
    names = ", ".join(f"{name} {count}" for name, count in held.most_common(MOST_HOLDERS))
    return Finding(
        "ok" if held.total() < offered else "warning", "gpus", text + (f": {names}" if names else "")
    )


def storage(classes: Sequence[Manifest]) -> Finding:
    names = [each["metadata"]["name"] for each in classes]
    default = [each["metadata"]["name"] for each in classes if _is_default(each)]
    if not names:
        fix = "claims must name a volume, or a provisioner must be installed"
        return Finding("warning", "storage", "there are no storage classes", fix)
    if not default:
        return Finding(
            "warning", "storage", f"no default among {', '.join(names)}", "name a class in each claim"
        )
    return Finding("ok", "storage", f"classes: {', '.join(names)}; default {default[0]}")


def dns(slices: Sequence[Manifest]) -> Finding:
    """Tasks find each other by names."""
    endpoints = [each for part in slices for each in part.get("endpoints") or []]
    ready = [each for each in endpoints if (each.get("conditions") or {}).get("ready") is not False]
    if ready:
        name = slices[0]["metadata"]["labels"][SERVICE_NAME]
        return Finding("ok", "dns", f"{name} has {len(ready)} endpoints")
    fix = "`kubectl -n kube-system get pods -l k8s-app=kube-dns`"
    return Finding(
        "warning", "dns", "the Service kube-dns has no endpoints: tasks may not find each other", fix
    )


def quotas(found: Iterable[Manifest]) -> list[Finding]:
    return [_quota(each) for each in found]


def rights(user: str, namespace: str, allowed: dict[str, bool]) -> Finding:
    """`allowed`: what was asked -> the server's answer."""
    refused = [what for what, may in allowed.items() if not may]
    where = f"{user} in the namespace {namespace}"
    if not refused:
        return Finding("ok", "rights", f"{where} may {', '.join(allowed)}")
    fix = f"kubectl create rolebinding tfyard -n {namespace} --clusterrole=tfyard-edit --user={user}"
    return Finding("warning", "rights", f"{where} may not {', '.join(refused)}", fix)


def _is_ready(node: Manifest) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def _is_default(storage_class: Manifest) -> bool:
    return (storage_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"


def _gpus(resources: Manifest | None) -> Decimal:
    found = (amount(value) for name, value in (resources or {}).items() if str(name).endswith("/gpu"))
    return sum((each for each in found if each), Decimal())


def _requested(pod: Manifest) -> Decimal:
    containers = (pod.get("spec") or {}).get("containers") or []
    return sum((_gpus((each.get("resources") or {}).get("limits")) for each in containers), Decimal())


def _holder(pod: Manifest) -> str:
    meta = pod["metadata"]
    return f"{meta.get('namespace')}/{(meta.get('labels') or {}).get(JOB_NAME) or meta['name']}"


def _quota(quota: Manifest) -> Finding:
    status, name = quota.get("status") or {}, quota["metadata"]["name"]
    hard, used = status.get("hard") or {}, status.get("used") or {}
    parts = [f"{what} {used.get(what, 0)}/{limit}" for what, limit in hard.items()]
    full = [what for what, limit in hard.items() if _is_nearly_used(used.get(what, 0), limit)]
    text = f"{name}: {', '.join(parts) or 'nothing is limited'}"
    if full:
        return Finding("warning", "quota", text, f"little is left of {', '.join(full)}: jobs may be refused")
    return Finding("ok", "quota", text)


def _is_nearly_used(used: object, limit: object) -> bool:
    whole, part = amount(limit), amount(used)
    return whole is not None and part is not None and part >= whole * NEARLY_USED
