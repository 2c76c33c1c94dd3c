"""Causes of tasks that were killed: their pod was evicted, drained, preempted or lost with its node, they ran out
of memory, a probe failed, or a signal ended them."""

import re
from collections.abc import Iterator

from tfyard.logs.tracebacks import fatal_error
from tfyard.model import Ending
from tfyard.model.container_reasons import STATUS_UNKNOWN
from tfyard.model.quantity import amount
from tfyard.overview import lost_peers
from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import End, Evidence
from tfyard.views.objects import EventView

_DISRUPTIONS = {
    "EvictionByEvictionAPI": ("drained", "evicted through the Eviction API, as `kubectl drain` does"),
    "PreemptionByScheduler": ("preempted", "preempted by a pod of a higher priority"),
    "Preempted": ("preempted", "preempted"),
    "Preempting": ("preempted", "preempted by a critical pod of its node"),
    "DeletionByTaintManager": (
        "node-lost",
        "deleted because its node has a NoExecute taint: it is not ready, or drained",
    ),
    "DeletionByPodGC": ("node-lost", "lost with its node"),
    "NodeLost": ("node-lost", "lost with its node"),
    "NodeShutdown": ("node-shutdown", "ended because its node shut down"),
    "Shutdown": ("node-shutdown", "ended because its node shut down"),
    "Terminated": ("node-shutdown", "ended because its node shut down"),
    "Unknown": ("node-rebooted", "ended unseen, because its node was rebooted"),
    STATUS_UNKNOWN: ("node-rebooted", "ended unseen: its node was rebooted, or lost its container"),
    "Deleted": ("deleted", "its pod was deleted"),
    "Restarted": ("restarted", "restarted by `tfyard restart`"),
}
"""Reason of a pod, a container or the condition DisruptionTarget -> kind and words."""
_REJECTED = r"^(?:OutOf\w+|NodeAffinity|UnexpectedAdmissionError|TopologyAffinityError)$"
_PRESSURE = r"low on resource: ([\w-]+)"
_VOLUME_LIMIT = r'EmptyDir volume "([^"]+)" exceeds the limit "([^"]+)"'
_DISK_LIMIT = r'local ephemeral storage limit "([^"]+)"|exceeds the total limit of containers (\S+)\.'
_FAILED_PROBE, _UNHEALTHY = r"failed (?:liveness|startup) probe", r"(?:Liveness|Startup) probe "
PROBE_KILLS = "Killing"
"""The reason of the event by which a kubelet tells that a probe ends a container, among others."""
SIGNALS = {
    130: ("stopped", "SIGINT: it was interrupted, as by Ctrl-C", ""),
    132: ("illegal-instruction", "SIGILL: its TensorFlow is built for another processor",
          "use an image for the node's processor, or nodes with AVX: `nodeSelector:`"),
    134: ("abort", "SIGABRT: a library gave up", ""),
    135: ("crash", "SIGBUS: often /dev/shm is too small",
          "job file: `volumes: {shm: {emptyDir: {medium: Memory}, at: /dev/shm}}`"),
    137: ("killed", "SIGKILL: by a person, the node, or because memory ran out outside of its own limit", ""),
    139: ("crash", "SIGSEGV: a crash in compiled code; often libraries that do not fit together", ""),
    143: ("stopped", "SIGTERM: it was asked to stop", ""),
}  # fmt: skip
"""Exit code, which is 128 + the number of the signal -> kind, words, fix."""
FROM_OUTSIDE = (130, 137, 143)
"""Exit codes of signals from outside: they ended the program, whatever exception it printed before."""
_CRASHES = (134, 139)
_GAVE_UP = (
    r"Check failed: .*|^terminate called .*|^\s*what\(\): .*|Assertion [`'].*failed.*|^Fatal Python error: .*"
)
REPLACED = "it runs again, and that costs no retry"


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    target = evidence.pod(end.task).taken_away
    if end.reason == "OOMKilled":
        yield _out_of_memory(evidence, end)
    elif end.reason == "Evicted":
        yield _evicted(evidence, end)
    elif end.reason == "Stalled":
        yield _stalled(evidence, end)
    elif peer := _lost_peer(evidence, end):
        yield _peer_lost(end, peer)
    elif by_probe := _by_probe(evidence, end):
        yield by_probe
    elif target is not None and target.reason in _DISRUPTIONS:
        quote = Quote("condition", cut(target.message or target.reason), target.last_transition_time)
        yield disrupted(evidence, end, target.reason, quote)
    elif end.reason in _DISRUPTIONS:
        yield disrupted(evidence, end, end.reason, end.quote(end.text or end.reason))
    elif re.match(_REJECTED, end.reason):
        sentence = f"the node of {TASKS} did not take it ({end.reason}): {cut(end.text, 200)}"
        yield Cause(
            kind="node-refused",
            sentence=sentence,
            fix=REPLACED,
            tasks=(end.task,),
            evidence=(end.quote(end.text),),
        )


def _stalled(evidence: Evidence, end: End) -> Cause:
    """The cause of an attempt that was ended because its program hung."""
    return Cause(
        kind="stalled",
        sentence=f"{TASKS}: its program hung, and was stopped: it printed no line for as long as `stall` allows",
        fix=f"when it hangs again, see what the programs do: `{evidence.stacks}`",
        tasks=(end.task,),
        evidence=(end.quote(end.text or "no output at all"),),
    )


def _lost_peer(evidence: Evidence, end: End) -> str:
    """The tasks that were taken away before this end, if it followed from that."""
    same = (
        each for each in reversed(evidence.status.endings) if (each.task, each.finished) == (end.task, end.at)
    )
    return next(same, Ending(task="", attempt=0)).peer


def _peer_lost(end: End, peer: str) -> Cause:
    return Cause(
        kind="peer-lost",
        sentence=lost_peers.sentence(TASKS, end.exit_code, peer),
        fix=lost_peers.ALL_AGAIN,
        tasks=(end.task,),
        evidence=(end.quote(),),
    )


def disrupted(evidence: Evidence, end: End, reason: str, quote: Quote) -> Cause:
    kind, words = _DISRUPTIONS.get(reason, ("taken-away", f"taken away ({reason})"))
    pod = evidence.pod(end.task).name or f"{evidence.name}-{end.task}"
    preempted = next((event for event in evidence.events_of("Pod", pod) if event.reason == "Preempted"), None)
    quotes = (Quote("event", cut(preempted.message), preempted.at), quote) if preempted else (quote,)
    sentence = f"{TASKS}: {words}"
    return Cause(kind=kind, sentence=sentence, fix=REPLACED, tasks=(end.task,), evidence=quotes)


def _evicted(evidence: Evidence, end: End) -> Cause:
    reason, fix = _eviction(evidence, end)
    sentence = f"the node evicted {TASKS}{reason}"
    return Cause(
        kind="evicted", sentence=sentence, fix=fix, tasks=(end.task,), evidence=(end.quote(cut(end.text)),)
    )


def _eviction(evidence: Evidence, end: End) -> tuple[str, str]:
    """Why, and what to do: the task passed a limit of its own, or the node had too little for all."""
    if volume := re.search(_VOLUME_LIMIT, end.text):
        fix = f"job file: a larger `sizeLimit` in the `emptyDir:` of the volume {volume[1]}, or a claim"
        return f", which wrote more than {volume[2]} into its volume {volume[1]}", fix
    on_volume = "job file: write to a volume (`volumes:`) instead of the container's own disk"
    if disk := re.search(_DISK_LIMIT, end.text):
        return f", which wrote more than its limit of {disk[1] or disk[2]} of ephemeral-storage", on_volume
    if pressure := re.search(_PRESSURE, end.text):
        memory = _more(evidence.memory(end.task)) or "8Gi"
        fixes = {
            "memory": f"job file: `memory: {memory}`, so that the node reserves it",
            "ephemeral-storage": on_volume,
        }
        return f" because it was short of {pressure[1]}", fixes.get(pressure[1], "")
    return "", ""


# --- probes


def has_probes(evidence: Evidence, task: str) -> bool:
    """Whether a kubelet may kill the training container because of a probe."""
    return bool({"livenessProbe", "startupProbe"} & evidence.container(task).keys())


def _by_probe(evidence: Evidence, end: End) -> Cause | None:
    """The cause of a run that the kubelet ended because of a probe. Under restartPolicy Never, its event does not
    name the probe: then the run must have no other reason to end."""
    name = evidence.pod(end.task).name or f"{evidence.name}-{end.task}"
    events = [each for each in evidence.events_of("Pod", name) if _is_during(each, end)]
    kills = [each for each in events if each.reason == PROBE_KILLS]
    told = next((each for each in events if re.match(_UNHEALTHY, each.message)), None)
    is_named = any(re.search(_FAILED_PROBE, each.message) for each in kills)
    if told is None or not kills or not (is_named or end.reason in ("", "Error")):
        return None
    probe, (_, _, answer) = told.message.split()[0].lower(), told.message.partition(": ")
    sentence = f"the kubelet killed {TASKS} because its {probe} probe failed"
    return Cause(
        kind="probe",
        sentence=sentence + (f": {cut(answer.strip(), 200)}" if answer.strip() else ""),
        fix=f"job file: `overlay:` with a {probe}Probe of a larger `timeoutSeconds` or `failureThreshold`",
        tasks=(end.task,),
        evidence=(Quote("event", cut(told.message), told.at),),
    )


def _is_during(event: EventView, end: End) -> bool:
    """Whether an event was during a run. Kubelets write both times in whole seconds."""
    if event.at is None or end.started is None or end.at is None:
        return False
    return end.started <= event.at <= end.at


def _out_of_memory(evidence: Evidence, end: End) -> Cause:
    memory = evidence.memory(end.task, end.init_container)
    limit = f" of {memory}" if memory else ""
    return Cause(
        kind="out-of-memory",
        sentence=f"{TASKS} used more than the memory limit{limit}, and the kernel killed it (OOMKilled)",
        fix=f"job file: `memory: {_more(memory) or '…'}`, or smaller batches",
        tasks=(end.task,),
        evidence=(end.quote(f"OOMKilled, {end.words.split(', ')[-1]}"),),
    )


def _more(limit: str) -> str:
    """A limit that is half as much again, in the same unit."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", limit)
    if match is None or amount(limit) is None:
        return ""
    return f"{float(match[1]) * 1.5:g}{match[2]}"


# --- signals


def of_signal(end: End, is_local: bool) -> Cause | None:
    """The cause of a program that a signal ended and that raised no exception."""
    if end.exit_code not in SIGNALS:
        return None
    kind, words, fix = SIGNALS[end.exit_code]
    died, line = fatal_error(end.text), _gave_up(end.text)
    if died is not None:
        words += f" ({died.position})" if died.position else ""
    elif line:
        words += f": {cut(line, 240)}"
    elif end.exit_code in _CRASHES:
        setting = "--env PYTHONFAULTHANDLER=1" if is_local else "job file: `env: {PYTHONFAULTHANDLER: 1}`"
        fix = f"{setting} prints the line at which it crashes"
    return Cause(
        kind=kind,
        sentence=f"{TASKS} ended by {words}",
        fix=fix,
        tasks=(end.task,),
        evidence=(end.quote(line),),
    )


def _gave_up(text: str) -> str:
    """The last message of a library or the interpreter before it aborted."""
    messages = [match[0] for line in text.split("\n") if (match := re.search(_GAVE_UP, line))]
    return messages[-1].strip() if messages else ""
