"""Causes of pods that no node takes: no room, a taint, a label that no node has. The scheduler reports how many
nodes refused and why, but neither which taint nor which label, so this module compares nodes and pod."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from tfyard.model import Manifest
from tfyard.model.quantity import amount
from tfyard.overview.cause import TASKS, Cause, Quote, S, cut
from tfyard.overview.causes import volumes
from tfyard.overview.evidence import Evidence, Unreadable
from tfyard.views.objects import NodeView
from tfyard.views.pods import PodDetails, Taint

PATIENCE = timedelta(seconds=30)
_INSUFFICIENT = r"Insufficient ([\w./-]*\w)"
_NAMED_TAINT = r"untolerated taint \{([^:}]+):? ?([^}]*)\}"
"""Message of schedulers before 1.34.2."""
_AROUND = r"^0/\d+ nodes are available: |\.(?: no new claims to deallocate,)? preemption: .*$"
"""Texts of the scheduler before and after its reasons."""
NAMED_HOLDERS = NAMED_NODES = 3
CORDONED = "node.kubernetes.io/unschedulable"
"""Taint of a node that is cordoned."""
_WORDS = {"cpu": "cpu", "memory": "memory", "nvidia.com/gpu": "gpu"}
"""Resource -> the word of the job file."""
_OTHERS = (
    (r"ReadWriteOncePod access mode already in-use", "multi-attach",
     "another pod has its claim, and the access mode ReadWriteOncePod lets only one have it",
     "job file: a claim with `access: ReadWriteMany`"),
    (r"didn't find available persistent volumes to bind", "claim-pending",
     "its claim waits for a volume, and none that fits is free on a node", "kubectl get pv"),
    (r"had volume node affinity conflict|didn't match PersistentVolume's node affinity|no available volume zone",
     "volume-zone",
     "its volume is on nodes or in a zone where no fitting node is",
     "choose nodes of the volume's zone, or a new claim whose class waits for the pod (WaitForFirstConsumer)"),
    (r"didn't have free ports", "port-in-use", "the host port that it asks for is in use on every node",
     "use another port, or no hostNetwork"),
    (r"topology spread constraints", "spread", "there are too few nodes to spread its tasks as demanded",
     "job file: `spread: prefer`"),
    (r"didn't satisfy existing pods anti-affinity|didn't match pod anti-affinity", "spread",
     "its tasks must be on different nodes, and there are too few", "job file: `spread: prefer`"),
    (r"didn't match pod affinity", "affinity", "no node has the pods beside which it wants to run", ""),
    (r"Too many pods", "no-room", "the nodes have as many pods as they may have", ""),
    (r"0/0 nodes|no nodes available", "no-nodes", "the cluster has no nodes", "kubectl get nodes"),
)  # fmt: skip


def of_pod(evidence: Evidence, pod: PodDetails) -> Cause | None:
    condition = pod.condition("PodScheduled")
    if condition is None or condition.status == "True" or condition.reason == "SchedulingGated":
        return None
    events = evidence.warnings(pod, "FailedScheduling")
    message = events[0].message if events else condition.message
    if not message:
        return None
    quote = Quote("condition", cut(message), condition.last_transition_time)
    return of_message(evidence, pod, message, Quote("event", cut(message), events[0].at) if events else quote)


def unseen(pod: PodDetails, now: datetime) -> Cause | None:
    """The cause of a pod that no scheduler has looked at."""
    created = pod.metadata.creation_timestamp
    if pod.spec.node_name or pod.spec.scheduling_gates or pod.condition("PodScheduled") or created is None:
        return None
    if now - created < PATIENCE:
        return None
    if pod.spec.resource_claims:
        return _unclaimed(pod, created)
    name = pod.spec.scheduler_name or "default-scheduler"
    quote = Quote("condition", f"pod {pod.name} has no node and no condition PodScheduled", created)
    sentence = f"no scheduler has looked at {TASKS}: is {name} running?"
    fix = "kubectl -n kube-system get pods"
    return Cause(kind="no-scheduler", sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))


def _unclaimed(pod: PodDetails, created: datetime) -> Cause:
    """The cause of a pod without its ResourceClaims: the scheduler reports nothing before all of them exist."""
    claims = [str(each.get("resourceClaimName") or each.get("name")) for each in pod.spec.resource_claims]
    quote = Quote("condition", f"pod {pod.name} has resource claims, and no condition PodScheduled", created)
    sentence = f"{TASKS} wait{S} until there are its resource claims: {', '.join(claims)}"
    fix = f"kubectl -n {pod.metadata.namespace} get resourceclaims"
    return Cause(kind="resource-claim", sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))


def of_message(evidence: Evidence, pod: PodDetails, message: str, quote: Quote) -> Cause:
    if re.search(volumes.CLAIM_PATTERN, message):
        return volumes.of_claim(evidence, pod, message, quote)
    explained = _by_nodes(evidence, pod, message) or _by_words(evidence, pod, message)
    reasons = re.sub(_AROUND, "", message)
    kind, sentence, fix = explained or ("unschedulable", f"no node takes {TASKS}: {cut(reasons)}", "")
    return Cause(kind=kind, sentence=sentence, fix=fix, tasks=(pod.task,), evidence=(quote,))


Found = tuple[str, str, str]
"""Kind, sentence, fix."""


def _by_nodes(evidence: Evidence, pod: PodDetails, message: str) -> Found | None:
    """The cause by the nodes. Each step leaves fewer of them: those with the labels, large enough, without a
    taint. The step that leaves none is the cause; busy nodes are only the last one."""
    if isinstance(evidence.nodes, Unreadable) or not evidence.nodes:
        return None
    labelled = [node for node in evidence.nodes if _has_labels(node, pod) and _is_attractive(node, pod)]
    if not labelled:
        return _selector(evidence.nodes, pod)
    short = [name for name in re.findall(_INSUFFICIENT, message) if name in pod.requests]
    large = _large_enough(labelled, pod, dict.fromkeys(short))
    if isinstance(large, tuple):
        return large
    free_of_taints = [node for node in large if not _refusing_taints(node, pod)]
    if not free_of_taints and re.search(r"untolerated taint|were unschedulable|not-ready", message):
        return _tainted(large, pod)
    if short:
        return _busy(evidence, free_of_taints, pod, short[0])
    return None


def misfit(nodes: Sequence[NodeView], pod: PodDetails) -> Found | None:
    """Why none of the nodes could take a pod, however idle they are: its labels, its size, or a taint."""
    labelled = [node for node in nodes if _has_labels(node, pod)]
    if not labelled:
        return _selector(nodes, pod)
    large = _large_enough(labelled, pod, pod.requests)
    if isinstance(large, tuple):
        return large
    return _tainted(large, pod) if all(_refusing_taints(node, pod) for node in large) else None


def _large_enough(nodes: list[NodeView], pod: PodDetails, names: Iterable[str]) -> list[NodeView] | Found:
    """The nodes that have enough of these resources when they are idle; or the resource that no node has."""
    for name in names:
        large = [node for node in nodes if offers(node, name) >= requested(pod, name)]
        if not large:
            return _too_large(nodes, pod, name)
        nodes = large
    return nodes


def _by_words(evidence: Evidence, pod: PodDetails, message: str) -> Found | None:
    """The cause by the scheduler's message alone."""
    for pattern, kind, words, fix in _OTHERS:
        if re.search(pattern, message):
            return kind, f"no node takes {TASKS}: {words}", fix
    if match := re.search(_INSUFFICIENT, message):
        name, need = match[1], pod.requests.get(match[1])
        words = f"each asks for {need} {name}" if need else f"too little {name} is free"
        fix = f"job file: a smaller `{_WORDS.get(name, name)}:`"
        return "no-room", f"no node has room for {TASKS}: {words}", fix
    if "untolerated taint" in message:
        return _unknown_taint(evidence, message)
    if "node affinity/selector" in message:
        labels = ", ".join(f"{key}={value}" for key, value in pod.spec.node_selector.items())
        return (
            "selector",
            f"no node has the labels that {TASKS} ask{S} for{f': {labels}' if labels else ''}",
            "job file: `nodeSelector:`",
        )
    if "were unschedulable" in message:  # the last, because in a large cluster some node is always cordoned
        return "cordoned", f"no node takes {TASKS}: they are cordoned", "kubectl get nodes"
    return None


# --- labels


def _has_labels(node: NodeView, pod: PodDetails) -> bool:
    return pod.spec.node_selector.items() <= node.metadata.labels.items()


def _is_attractive(node: NodeView, pod: PodDetails) -> bool:
    """Whether a node has the pod's required node affinity: one of its terms with all expressions."""
    terms = _terms(pod)
    return not terms or any(_matches(node, term) for term in terms)


def _terms(pod: PodDetails) -> list[Manifest]:
    demanded = (pod.spec.affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return list((demanded or {}).get("nodeSelectorTerms") or [])


def _matches(node: NodeView, term: Manifest) -> bool:
    parts = (("matchExpressions", node.metadata.labels), ("matchFields", {"metadata.name": node.name}))
    return all(_holds(each, values) for part, values in parts for each in term.get(part) or [])


def _holds(expression: Manifest, labels: Mapping[str, str]) -> bool:
    value, allowed = labels.get(str(expression.get("key"))), expression.get("values") or []
    match expression.get("operator"):
        case "In":
            return value in allowed
        case "NotIn":
            return value not in allowed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case operator:  # Gt, Lt: of whole numbers
            low, high = (value, allowed[0]) if operator == "Lt" else (allowed[0], value)
            return str(low).isdigit() and str(high).isdigit() and int(low or 0) < int(high or 0)


def _selector(nodes: Sequence[NodeView], pod: PodDetails) -> Found:
    for key, value in pod.spec.node_selector.items():
        if not any(node.metadata.labels.get(key) == value for node in nodes):
            there = Counter(node.metadata.labels[key] for node in nodes if key in node.metadata.labels)
            known = ", ".join(f"{key}={name} ({count})" for name, count in there.most_common(5))
            words = f"there are: {known}" if known else f"no node has a label {key}"
            return (
                "selector",
                f"no node has the label {key}={value} that {TASKS} ask{S} for; {words}",
                "job file: `nodeSelector:`",
            )
    demands = [f"{key}={value}" for key, value in pod.spec.node_selector.items()]
    demands += [" or ".join(map(_term_words, terms))] if (terms := _terms(pod)) else []
    return (
        "selector",
        f"no node has all that {TASKS} ask{S} for: {', '.join(demands)}",
        "job file: `nodeSelector:`, or the affinity of its `overlay:`",
    )


def _term_words(term: Manifest) -> str:
    """A term in words, such as `gpu In (a100, h100)`."""
    each = [*(term.get("matchExpressions") or []), *(term.get("matchFields") or [])]
    return ", ".join(
        f"{e.get('key')} {e.get('operator')}" + (f" ({', '.join(e['values'])})" if e.get("values") else "")
        for e in each
    )


# --- taints


def _refusing_taints(node: NodeView, pod: PodDetails) -> list[Taint]:
    hard = (taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute"))
    return [taint for taint in hard if not any(each.tolerates(taint) for each in pod.spec.tolerations)]


def _tainted(nodes: Sequence[NodeView], pod: PodDetails) -> Found:
    """The cause by the taint of the most nodes. Kubernetes' own taints are about a node's state: tolerating them
    would not help."""
    taints = Counter((t.key, t.value, t.effect) for node in nodes for t in _refusing_taints(node, pod))
    (key, value, effect), count = taints.most_common(1)[0]
    named = f"{key}{f'={value}' if value else ''}:{effect}"
    if key == CORDONED:
        cordoned = [
            node.name for node in nodes if any(taint.key == key for taint in _refusing_taints(node, pod))
        ]
        fix = f"kubectl uncordon {' '.join(cordoned[:NAMED_NODES])}"
        return "cordoned", f"{_nodes(count)} that would take {TASKS} {_are(count)} cordoned", fix
    if key.startswith(("node.kubernetes.io/", "node.cloudprovider")):
        state = key.rpartition("/")[2]
        return (
            "node-state",
            f"{_nodes(count)} that would take {TASKS} {_are(count)} {state}",
            "kubectl describe nodes",
        )
    fix = f"job file: `tolerations: [{{key: {key}, operator: Exists, effect: {effect}}}]`"
    return "taint", f"{_nodes(count)} would take {TASKS}, but for the taint {named}", fix


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _unknown_taint(evidence: Evidence, message: str) -> Found:
    if match := re.search(_NAMED_TAINT, message):
        fix = f"job file: `tolerations: [{{key: {match[1]}, operator: Exists}}]`"
        return "taint", f"no node takes {TASKS}: they have the taint {match[1]}", fix
    words = "the scheduler does not name it, and you may not list nodes"
    if not isinstance(evidence.nodes, Unreadable):
        words = "the scheduler does not name it"
    fix = "ask the cluster's administrator which taints its nodes have, then `tolerations:` in the job file"
    return "taint", f"no node takes {TASKS}, because of a taint; {words}", fix


# --- room


def requested(pod: PodDetails, name: str) -> float:
    return float(amount(pod.requests.get(name, 0)) or 0)


def offers(node: NodeView, name: str) -> float:
    return float(amount(node.status.allocatable.get(name, 0)) or 0)


def _too_large(nodes: Sequence[NodeView], pod: PodDetails, name: str) -> Found:
    largest = max(nodes, key=lambda node: offers(node, name))
    word, most = _WORDS.get(name, name), str(largest.status.allocatable.get(name, "0"))
    if not offers(largest, name):
        fix = "install the device plugin of these GPUs (`kubectl describe nodes` lists what they offer)"
        return "no-room", f"no node offers {name}, and {TASKS} ask{S} for it", fix if "/" in name else ""
    asked = pod.requests[name]
    if most.endswith("Ki"):  # the unit in which nodes report their memory
        most = f"{int(offers(largest, name)) >> 20}Mi"
    sentence = f"{TASKS} ask{S} for {asked} {name}, and the largest node has {most}"
    return "no-room", sentence, f"job file: `{word}: {most}` at most"


def _busy(evidence: Evidence, nodes: Sequence[NodeView], pod: PodDetails, name: str) -> Found:
    fix = f"wait, or ask for less: `{_WORDS.get(name, name)}:`"
    asked = pod.requests[name]
    if isinstance(evidence.neighbours, Unreadable):
        return (
            "no-room",
            f"the nodes are busy: {TASKS} ask{S} for {asked} {name}, and none has so much left",
            fix,
        )
    here = {node.name for node in nodes}
    holders = [each for each in evidence.neighbours if each.spec.node_name in here and requested(each, name)]
    free = sum(offers(node, name) for node in nodes) - sum(requested(each, name) for each in holders)
    held = _held(holders, name)
    sentence = f"the nodes are busy: {TASKS} ask{S} for {asked} {name}, {plain(free)} is left in all{held}"
    return "no-room", sentence, fix


def _held(holders: Iterable[PodDetails], name: str) -> str:
    held: dict[str, float] = {}
    for pod in holders:
        job = pod.job or pod.name
        held[job] = held.get(job, 0) + requested(pod, name)
    most = sorted(held.items(), key=lambda each: -each[1])
    first = ", ".join(f"{job} ({plain(count)})" for job, count in most[:NAMED_HOLDERS])
    more = f" and {len(most) - NAMED_HOLDERS} more" if len(most) > NAMED_HOLDERS else ""
    return f"; held by {first}{more}" if held else ""


def plain(number: float) -> str:
    """A number for a sentence; large numbers are bytes."""
    return f"{number / (1 << 30):.1f}Gi" if number >= 1 << 20 else f"{number:g}"
