"""The findings of `doctor` about the objects of a cluster: each is ok, a warning or wrong, with its fix."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Literal

from msgspec import Struct

from tfyard.formats.crd.status import missing_memory
from tfyard.model import Manifest
from tfyard.model.quantity import amount
from tfyard.overview.causes.no_operator import LEADER_CHANGE, is_led
from tfyard.overview.wording import age
from tfyard.views.objects import Lease, NodeView, Quota, Slice, StorageClass
from tfyard.views.pods import PodDetails

Level = Literal["ok", "warning", "wrong"]
OLDEST = (1, 30)
"""The first Kubernetes that has the validation rules of the CRDs."""
NEARLY_USED = Decimal("0.9")
MOST_HOLDERS = 5


class Finding(Struct, frozen=True, omit_defaults=True):
    level: Level
    subject: str
    text: str
    fix: str = ""


def version(answer: Manifest, server: str) -> Finding:
    text = f"{server} is Kubernetes {answer.get('gitVersion', '?')}"
    numbers = tuple(int(re.sub(r"\D", "", str(answer.get(part) or "0")) or 0) for part in ("major", "minor"))
    if numbers < OLDEST:
        return Finding("wrong", "server", text, "TFJob's CRDs need Kubernetes 1.30 or newer")
    return Finding("ok", "server", text)


def definition(crd: Manifest) -> Finding:
    """The finding about the CRD: its author, the versions that it serves, and whether it stores the memory."""
    served = [each["name"] for each in crd["spec"]["versions"] if each.get("served")]
    managers = {each.get("manager", "") for each in crd["metadata"].get("managedFields") or []}
    ours = sorted(each for each in managers if each.startswith("tfyard"))
    others = sorted(managers - {*ours, "kube-apiserver", ""})
    name = crd["metadata"]["name"]
    text = f"{name} serves {', '.join(served)}; applied by {', '.join(ours or others) or 'an unknown tool'}"
    missing = missing_memory(crd)
    if not missing:
        return Finding("ok", "crd", text)
    fix = "`tfyard install` upgrades it; until then tfyard's operator does not start"
    level: Level = "wrong" if ours else "warning"  # another tool's operator may do without
    return Finding(level, "crd", f"{text}; it would drop {', '.join(missing)}", fix)


def lease(leases: Sequence[Lease], now: datetime) -> Finding:
    """Whether an operator runs: the leader renews its lease every few seconds."""
    if not leases:
        return Finding("warning", "leader", "tfyard's operator has never run here")
    renewals = [(each.spec.renew_time, each) for each in leases if each.spec.renew_time]
    held = [(at, each) for at, each in renewals if each.spec.holder_identity]
    if not held:
        return _leaderless([at for at, _ in renewals], now)
    renewed, newest = max(held, key=lambda each: each[0])
    where, silent = newest.metadata.namespace, (now - renewed).total_seconds()
    text = f"{newest.spec.holder_identity} in the namespace {where}, renewed {age(silent)} ago"
    if not is_led(newest, now):
        fix = f"`kubectl -n {where} get pods` shows whether the operator runs"
        return Finding("wrong", "leader", f"{text}: the operator does not run", fix)
    return Finding("ok", "leader", text)


def _leaderless(released: Sequence[datetime], now: datetime) -> Finding:
    if any(now - each <= LEADER_CHANGE for each in released):
        silent = (now - max(released)).total_seconds()
        return Finding("warning", "leader", f"the leader changes: the last one ended {age(silent)} ago")
    return Finding("wrong", "leader", "no operator is the leader", "`tfyard install`, or look at its pods")


def nodes(listed: Sequence[NodeView]) -> Finding:
    ready = [each for each in listed if each.is_ready]
    text = f"{len(ready)} of {len(listed)} nodes are ready"
    if not ready:
        return Finding("wrong", "nodes", text, "`kubectl get nodes` and `kubectl describe node NAME` say why")
    return Finding("ok" if len(ready) == len(listed) else "warning", "nodes", text)


def gpus(nodes: Sequence[NodeView], pods: Sequence[PodDetails] | None) -> Finding:
    """How many GPUs there are, and which jobs hold them. `pods`: None if they may not be listed."""
    offered = sum((_gpus(each.status.allocatable) for each in nodes), Decimal())
    if not offered:
        fix = "if the nodes have some, their device plugin does not run"
        return Finding("ok", "gpus", f"no node offers GPUs; {fix}")
    if pods is None:
        return Finding(
            "ok", "gpus", f"{offered} on the nodes; you may not list pods, so their use is unknown"
        )
    held = Counter[str]()
    for pod in pods:
        held[_holder(pod)] += int(_requested(pod))
    held = +held
    text = f"{offered} on the nodes, {held.total()} in use, {offered - held.total()} free"
    names = ", ".join(f"{name} {count}" for name, count in held.most_common(MOST_HOLDERS))
    return Finding(
        "ok" if held.total() < offered else "warning", "gpus", text + (f": {names}" if names else "")
    )


def storage(classes: Sequence[StorageClass]) -> Finding:
    names = [each.name for each in classes]
    default = [each.name for each in classes if each.is_default]
    if not names:
        fix = "claims must name a volume, or a provisioner must be installed"
        return Finding("warning", "storage", "there are no storage classes", fix)
    if not default:
        return Finding(
            "warning", "storage", f"no default among {', '.join(names)}", "name a class in each claim"
        )
    return Finding("ok", "storage", f"classes: {', '.join(names)}; default {default[0]}")


def dns(slices: Sequence[Slice]) -> Finding:
    """Whether the cluster's DNS has endpoints: tasks find each other by names."""
    ready = [endpoint for each in slices for endpoint in each.ready]
    if ready:
        text = f"{slices[0].service} has {len(ready)} endpoint{'s' if len(ready) > 1 else ''}"
        return Finding("ok", "dns", text)
    fix = "`kubectl -n kube-system get pods -l k8s-app=kube-dns`"
    return Finding(
        "warning", "dns", "the Service kube-dns has no endpoints: tasks may not find each other", fix
    )


def quotas(listed: Iterable[Quota]) -> list[Finding]:
    return [_quota(quota) for quota in listed]


def rights(user: str, namespace: str, allowed: dict[str, bool]) -> Finding:
    """`allowed`: action -> whether the server allows it."""
    refused = [action for action, may in allowed.items() if not may]
    where = f"{user} in the namespace {namespace}"
    if not refused:
        return Finding("ok", "rights", f"{where} may {', '.join(allowed)}")
    fix = f"`kubectl create rolebinding tfyard -n {namespace} --clusterrole=tfyard-edit --user={user}`"
    return Finding("warning", "rights", f"{where} may not {', '.join(refused)}", fix)


def _gpus(resources: Mapping[str, object]) -> Decimal:
    amounts = (amount(value) for name, value in resources.items() if name.endswith("/gpu"))
    return sum((number for number in amounts if number), Decimal())


def _requested(pod: PodDetails) -> Decimal:
    return sum((_gpus(each.resources.limits) for each in pod.spec.containers), Decimal())


def _holder(pod: PodDetails) -> str:
    return f"{pod.metadata.namespace}/{pod.job or pod.name}"


def _quota(quota: Quota) -> Finding:
    hard, used = quota.status.hard, quota.status.used
    parts = [f"{resource} {used.get(resource, 0)}/{limit}" for resource, limit in hard.items()]
    full = [resource for resource, limit in hard.items() if _is_nearly_used(used.get(resource, 0), limit)]
    text = f"{quota.name}: {', '.join(parts) or 'nothing is limited'}"
    if full:
        return Finding("warning", "quota", text, f"little is left of {', '.join(full)}: jobs may be refused")
    return Finding("ok", "quota", text)


def _is_nearly_used(used: object, limit: object) -> bool:
    whole, part = amount(limit), amount(used)
    return whole is not None and part is not None and part >= whole * NEARLY_USED
