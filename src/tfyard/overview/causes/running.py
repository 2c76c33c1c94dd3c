"""Causes of trainings that run without progress: tasks do not reach each other, wait for others that do not run,
print nothing for a long time, or have a loss that is not a number."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import isnan

from tfyard.logs.readings import read_lines
from tfyard.logs.tracebacks import last_exception
from tfyard.model.exit_codes import SIGNALLED
from tfyard.overview.cause import TASKS, Cause, Quote, S, cut, named
from tfyard.overview.evidence import End, Evidence, LogTail, seen
from tfyard.overview.wording import duration
from tfyard.views.objects import NetworkPolicy
from tfyard.views.pods import PodDetails

PATIENCE = timedelta(minutes=2)
"""Time that tasks may wait for each other: pods of one job need not start at the same moment."""
_OF_GRPC = (
    r"failed to connect to all addresses|DNS resolution failed|UNAVAILABLE|UnavailableError"
    r"|CreateSession still waiting for response|DEADLINE_EXCEEDED: Barrier timed out"
    r"|Timed out waiting for .*worker|heartbeat timeout"
)
"""Errors of gRPC, which TensorFlow uses for peers and for little else."""
_OF_SOCKETS = (
    r"Name or service not known|Temporary failure in name resolution|Connection refused|No route to host"
    r"|Connection timed out"
)
"""Errors of connections to any server; they are about a peer only if one is named."""
_CONNECTING = r"Waiting for \d+/\d+ tasks to connect"
"""Message of TensorFlow's coordination service, which then lists some of the missing tasks."""
_CONNECTED = r"Barrier\(WaitForAllTasks.* has passed"
_SERVES = "Started server with target"
"""Message of TensorFlow when peers can reach a task; a coordinator that waits for one prints nothing."""
_TASK = r"/job:(\w+)/(?:replica:\d+/)?task:(\d+)"
_NCCL = (
    r"NCCL WARN|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|ncclRemoteError|NCCL operation .* failed"
    r"|Error invoking NCCL|NCCL communication aborted"
)
_WAITS_FOR_CLUSTER = r"Waiting for the cluster|CreateSession still waiting|Waiting for model to be ready"
_SIDECAR = "istio-proxy"
LONGEST_SILENCE = timedelta(minutes=10)
SERVERS = ("ps-",)
"""Prefixes of tasks that print nothing during a training that works."""


def find(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    if evidence.status.is_finished:
        return
    yield from _half(evidence, now)
    yield from _unreached(evidence, now)
    yield from _not_connected(evidence, now)
    yield from _unserved(evidence, now)
    yield from _not_a_number(evidence, evidence.up)
    stalled = list(_stalled(evidence))
    silent = {task for task in evidence.up if not task.startswith(SERVERS)}
    yield from stalled or _silent(evidence, silent, now)


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    """Causes of a task that ended because it lost a peer: what ended the peer, if that is known."""
    last = _decisive(end)
    if _is_of_peers(evidence, end.task, last):
        yield _diagnosed(evidence, end.task, last, end.quote(_line(last)))


def _is_of_peers(evidence: Evidence, task: str, text: str) -> bool:
    """Whether the text is about a peer, and not about a server outside of the job."""
    if sum(role.replicas for role in evidence.roles) == 1:
        return False
    if re.search(f"{_OF_GRPC}|{_NCCL}", text):
        return True
    return re.search(_OF_SOCKETS, text) is not None and bool(_peers(evidence, task, text))


def _decisive(end: End) -> str:
    """The exception that ended the program: earlier lines may be about handled errors. A signal has none."""
    raised = last_exception(end.text) if (end.exit_code or 0) < SIGNALLED else None
    return raised.whole if raised else "\n".join(end.text.split("\n")[-20:])


def _half(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    late = [pod for pod in evidence.waiting if _age(pod, now) > PATIENCE]
    up = evidence.running
    if not late or not up:
        return
    missing = named(pod.task for pod in late)
    total = len(up) + len(evidence.waiting)
    quote = Quote(
        "condition",
        f"{len(up)} of {total} pods run",
        max((pod.changed for pod in up if pod.changed), default=None),
    )
    sentence = f"{len(up)} of {total} tasks run and hold their resources while they wait for {missing}"
    tasks = tuple(pod.task for pod in late)
    yield Cause(
        kind="half-running",
        sentence=sentence,
        fix="job file: `gang: true`",
        tasks=tasks,
        evidence=(quote,),
        is_symptom=True,
    )


def _age(pod: PodDetails, now: datetime) -> timedelta:
    created = pod.metadata.creation_timestamp
    return now - created if created else timedelta()


def _not_connected(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """Causes of tasks that wait for others to connect, which every job does for a moment."""
    for task in sorted(evidence.up):
        log = evidence.logs.get(task)
        missing = _stragglers(log.text) if log else []
        if log is not None and missing and (log.at is None or now - log.at > PATIENCE):
            reason, fix = next(_reasons(evidence, missing), ("", ""))
            sentence = f"{TASKS} wait{S} for {named(missing)} to connect"
            quote = Quote("log", f"Example stragglers: {', '.join(missing)}", log.at)
            yield _cause("peers", f"{sentence}: {reason}" if reason else sentence, fix, task, quote)


def _stragglers(log: str) -> list[str]:
    """Missing tasks in the last message of the coordination service; none if all have connected since."""
    ends = [match.end() for match in re.finditer(_CONNECTING, log)]
    last = log[ends[-1] :] if ends else ""
    if re.search(_CONNECTED, last):
        return []
    return [f"{role}-{index}" for role, index in re.findall(rf"(?m)^{_TASK}$", last)]


def _unserved(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """The cause of a job whose parameter servers run and do not serve, while all others wait in silence."""
    up = {task: log for task, log in evidence.logs.items() if task in evidence.up}
    missing = sorted(task for task in up if task.startswith(SERVERS) and _SERVES not in up[task].text)
    serving = sorted(task for task in up if _SERVES in up[task].text)
    times = [log.at for log in up.values() if log.at is not None]
    if not missing or not serving or not times or now - max(times) < PATIENCE:
        return
    line = up[missing[0]].text.strip().rpartition("\n")[2]
    others = named(sorted(up.keys() - {*missing}))
    yield Cause(
        kind="peers",
        sentence=f"no TensorFlow server of {TASKS} has started yet, so {others} cannot go on",
        fix=f"see what they do: `{evidence.stacks}`",
        tasks=tuple(missing),
        evidence=(Quote("log", cut(line or f"no output of {missing[0]}"), up[missing[0]].at),),
    )


def is_unreached(evidence: Evidence) -> bool:
    """Whether the log of a running or ended task has a message about an unreachable peer."""
    logs = evidence.logs.items()
    return any(_is_of_peers(evidence, task, log.text) or _stragglers(log.text) for task, log in logs)


def _unreached(evidence: Evidence, now: datetime) -> Iterator[Cause]:
    """Causes of running tasks that do not reach peers. Only the last lines count: most programs retry."""
    for task in sorted(evidence.up):
        log = evidence.logs.get(task)
        last = "\n".join(log.text.split("\n")[-3:]) if log else ""
        if log is not None and (_is_of_peers(evidence, task, last) or _waits_for_long(log, last, now)):
            yield _diagnosed(evidence, task, last, Quote("log", cut(_line(last)), log.at))


def _waits_for_long(log: LogTail, last: str, now: datetime) -> bool:
    """Whether a task waits for the cluster, longer than every job does at its start."""
    is_over = log.at is None or now - log.at > PATIENCE
    return is_over and re.search(_WAITS_FOR_CLUSTER, last) is not None


def _diagnosed(evidence: Evidence, task: str, text: str, quote: Quote) -> Cause:
    peers = _peers(evidence, task, text)
    names = named(peers) if peers else "the others"
    waits = re.search(_WAITS_FOR_CLUSTER, text) is not None
    for sentence, fix in _reasons(evidence, peers, waits_for_cluster=waits):
        return _cause("peers", f"{TASKS} cannot reach {names}: {sentence}", fix, task, quote)
    if re.search(_NCCL, text):
        fix = (
            "job file: `env: {NCCL_DEBUG: INFO}` shows more; `NCCL_SOCKET_IFNAME: eth0` chooses the interface"
        )
        return _cause(
            "nccl", f"{TASKS}: NCCL cannot connect its GPUs with those of {names}", fix, task, quote
        )
    return _cause("peers", f"{TASKS} cannot reach {names}", "", task, quote)


def _cause(kind: str, sentence: str, fix: str, task: str, quote: Quote) -> Cause:
    return Cause(kind=kind, sentence=sentence, fix=fix, tasks=(task,), evidence=(quote,), is_symptom=True)


def _peers(evidence: Evidence, task: str, text: str) -> list[str]:
    """Peers that a text names: by TensorFlow's names, host names or addresses."""
    peers = [f"{role}-{index}" for role, index in re.findall(_TASK, text)]
    for role in evidence.roles:
        for index in range(min(role.replicas, 1000)):
            name = f"{role.name.lower()}-{index}"
            if re.search(rf"\b{re.escape(evidence.name)}-{name}\b", text):
                peers.append(name)
    peers += [pod.task for pod in evidence.tasks if _names(text, pod.status.pod_ip)]
    return [name for name in dict.fromkeys(peers) if name != task]


def _names(text: str, address: str) -> bool:
    return bool(address) and re.search(rf"(?<![\w.]){re.escape(address)}(?![\w.])", text) is not None


def _reasons(
    evidence: Evidence, peers: list[str], *, waits_for_cluster: bool = False
) -> Iterator[tuple[str, str]]:
    """Reasons (words, fix) for unreachable peers, the most certain first."""
    up = {pod.task for pod in evidence.running}
    down = [task for task in peers if task not in up]
    if down and evidence.tasks:
        yield f"no pod of {named(down)} runs", ""
    if _evaluator_in_cluster(evidence) and (waits_for_cluster or _names_evaluator(peers)):
        yield (
            "TF_CONFIG lists the evaluator as a member of the cluster, so all wait for it",
            "job file: `dialect: tf2`",
        )
    if any(status.name == _SIDECAR for pod in evidence.tasks for status in pod.statuses):
        fix = 'job file: `annotations: {sidecar.istio.io/inject: "false"}`'
        yield "Istio's proxy is between them, and does not let TensorFlow's own protocol pass", fix
    policies = [policy.name for policy in seen(evidence.policies) if _isolates(policy, evidence)]
    if policies:
        fix = f"kubectl -n {evidence.namespace} describe networkpolicy {policies[0]}"
        yield (
            f"NetworkPolicy {', '.join(policies)} selects these pods, and may not let them talk to each other",
            fix,
        )
    unlisted = _unlisted(evidence)
    if unlisted:
        fix = f"kubectl -n {evidence.namespace} get endpointslices"
        yield f"{named(unlisted)} is not among the endpoints of its Service, so its name is not resolved", fix


def _names_evaluator(peers: list[str]) -> bool:
    """Whether an evaluator is missing: only then its entry in TF_CONFIG is a reason, for current programs."""
    return any(peer.startswith("evaluator-") for peer in peers)


def _evaluator_in_cluster(evidence: Evidence) -> bool:
    cluster = evidence.status.cluster
    has_evaluator = any(role.name == "Evaluator" and role.replicas for role in evidence.roles)
    return cluster is not None and cluster.dialect == "kubeflow" and has_evaluator


def _isolates(policy: NetworkPolicy, evidence: Evidence) -> bool:
    labels = policy.spec.pod_selector.get("matchLabels") or {}
    if policy.spec.pod_selector.get("matchExpressions"):
        return False  # expressions are not evaluated: they may select the pods or not
    return any(labels.items() <= pod.metadata.labels.items() for pod in evidence.tasks)


def _unlisted(evidence: Evidence) -> list[str]:
    """Running tasks that no EndpointSlice of the job has; none if the slices are unknown."""
    services = {evidence.name, *(pod.name for pod in evidence.tasks)}
    slices = [each for each in seen(evidence.slices) if each.service in services]
    if not slices:
        return []
    listed = {e.target_ref.name for each in slices for e in each.endpoints or () if e.target_ref}
    return [pod.task for pod in evidence.running if pod.name not in listed]


def _line(text: str) -> str:
    """The line with the error."""
    lines = [line for line in text.split("\n") if line.strip()]
    for pattern in (_OF_GRPC, _OF_SOCKETS, _NCCL, _WAITS_FOR_CLUSTER):
        for line in reversed(lines):
            if re.search(pattern, line):
                return line.strip()
    return lines[-1].strip() if lines else ""


# --- silence and numbers


def _stalled(evidence: Evidence) -> Iterator[Cause]:
    """The cause by the condition Stalled, which begins with the task: the job says how long that may be silent."""
    stall = evidence.status.condition("Stalled")
    task, _, words = stall.message.partition(" ") if stall and stall.status == "True" else ("", "", "")
    if stall is None or not task or (evidence.is_local and task not in evidence.up):
        return
    yield Cause(
        kind="stalled",
        sentence=f"{TASKS} {re.split('[;,]', words)[0]}: it hangs",
        fix=f"see what they do: `{evidence.stacks}`",
        tasks=(task,),
        evidence=(Quote("condition", cut(stall.message), stall.last_transition_time),),
        is_symptom=True,
    )


def _silent(evidence: Evidence, up: set[str], now: datetime) -> Iterator[Cause]:
    """Causes of tasks without output, if all logs are silent: waiting workers are silent, too."""
    times = {task: log.at for task, log in evidence.logs.items() if task in up and log.at is not None}
    if not times:
        return
    last = max(times, key=lambda task: times[task])
    quiet = now - times[last]
    if quiet < LONGEST_SILENCE:
        return
    line = evidence.logs[last].text.strip().rpartition("\n")[2]
    sentence = f"{named(sorted(times))} printed nothing for {duration(quiet.total_seconds())}"
    quote = Quote("log", cut(line or "no output at all"), times[last])
    tasks = tuple(sorted(times))
    yield Cause(
        kind="no-progress",
        sentence=sentence,
        fix=f"see what they do: `{evidence.stacks}`",
        tasks=tasks,
        evidence=(quote,),
        is_symptom=True,
    )


def _metrics(log: str) -> list[dict[str, float]]:
    return [reading.values for reading in read_lines(log)]


def _not_a_number(evidence: Evidence, up: set[str]) -> Iterator[Cause]:
    for task in sorted(up):
        log = evidence.logs.get(task)
        values = _metrics(log.text) if log and "nan" in log.text.lower() else []
        names = [name for name, value in (values[-1] if values else {}).items() if isnan(value)]
        if log is not None and names:
            line = next(line for line in reversed(log.text.split("\n")) if "nan" in line.lower())
            fix = "stop it; then a smaller learning rate, gradient clipping, or check the data for NaN"
            sentence = f"{', '.join(names)} of {TASKS} is not a number, and the training continues"
            yield Cause(
                kind="nan-loss",
                sentence=sentence,
                fix=fix,
                tasks=(task,),
                evidence=(Quote("log", cut(line), log.at),),
            )
