"""A task was killed: its pod was evicted, drained, preempted or lost with its node, its memory was used up, or a
signal ended it."""

import re
from collections.abc import Iterator

from tfyard.model.quantity import amount
from tfyard.overview.cause import TASKS, Cause, Quote, cut
from tfyard.overview.evidence import End, Evidence, seen
from tfyard.overview.tracebacks import fatal_error

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
    "Deleted": ("deleted", "its pod was deleted"),
}
"""Reasons of pods and of the condition DisruptionTarget -> kind, and what happened."""
_REJECTED = r"^(?:OutOf\w+|NodeAffinity|UnexpectedAdmissionError|TopologyAffinityError)$"
_PRESSURE = r"low on resource: ([\w-]+)|exceeds? the (?:total )?limit[^.]*|(ephemeral local storage)"
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
"""Exit code -> kind, words, fix. 128 + the number of the signal."""
FROM_OUTSIDE = (130, 137, 143)
"""Whoever sent these signals ended the program, whatever it had survived before."""
_CRASHES = (134, 139)
_GAVE_UP = (
    r"Check failed: .*|^terminate called .*|^\s*what\(\): .*|Assertion [`'].*failed.*|^Fatal Python error: .*"
)
REPLACED = "tfyard replaces the pod, and that costs no retry"


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    target = evidence.pod(end.task).taken_away
    if end.reason == "OOMKilled":
        yield _out_of_memory(evidence, end)
    elif end.reason == "Evicted":
        yield _evicted(evidence, end)
    elif end.reason in _DISRUPTIONS:
        yield _disrupted(evidence, end, end.reason, end.quote(end.text or end.reason))
    elif target is not None and target.reason in _DISRUPTIONS:
        quote = Quote("condition", cut(target.message or target.reason), target.last_transition_time)
        yield _disrupted(evidence, end, target.reason, quote)
    elif re.match(_REJECTED, end.reason):
        sentence = f"the node of {TASKS} did not take it ({end.reason}): {cut(end.text, 200)}"
        yield Cause(
            kind="node-refused",
            sentence=sentence,
            fix=REPLACED,
            tasks=(end.task,),
            evidence=(end.quote(end.text),),
        )


def leaving(evidence: Evidence) -> Iterator[Cause]:
    """Pods that are being taken away at this moment."""
    for pod in seen(evidence.pods):
        target = pod.taken_away if pod.task and not pod.is_over else None
        if target is not None:
            quote = Quote("condition", cut(target.message or target.reason), target.last_transition_time)
            yield _disrupted(evidence, End(task=pod.task, reason=target.reason), target.reason, quote)


def _disrupted(evidence: Evidence, end: End, reason: str, quote: Quote) -> Cause:
    kind, what = _DISRUPTIONS.get(reason, ("taken-away", f"taken away ({reason})"))
    pod = evidence.pod(end.task).name or f"{evidence.name}-{end.task}"
    preempted = next((event for event in evidence.events_of("Pod", pod) if event.reason == "Preempted"), None)
    quotes = (Quote("event", cut(preempted.message), preempted.at), quote) if preempted else (quote,)
    sentence = f"{TASKS}: {what}"
    return Cause(kind=kind, sentence=sentence, fix=REPLACED, tasks=(end.task,), evidence=quotes)


def _evicted(evidence: Evidence, end: End) -> Cause:
    found = re.search(_PRESSURE, end.text)
    resource = (found[1] or "ephemeral-storage") if found else ""
    fix = {
        "memory": f"job file: `memory: {_more(evidence.memory(end.task)) or '8Gi'}`, so that the node reserves it",
        "ephemeral-storage": "job file: write to a volume (`volumes:`) instead of the container's own disk",
    }.get(resource, "")
    sentence = f"the node evicted {TASKS}" + (f" because it was short of {resource}" if resource else "")
    return Cause(
        kind="evicted", sentence=sentence, fix=fix, tasks=(end.task,), evidence=(end.quote(cut(end.text)),)
    )


def _out_of_memory(evidence: Evidence, end: End) -> Cause:
    memory = evidence.memory(end.task)
    limit = f" of {memory}" if memory else ""
    option = "--memory" if evidence.is_local else "job file: `memory:"
    more = _more(memory) or "…"
    fix = f"{option} {more}" if evidence.is_local else f"{option} {more}`"
    return Cause(
        kind="out-of-memory",
        sentence=f"{TASKS} used more than the memory limit{limit}, and the kernel killed it (OOMKilled)",
        fix=f"{fix}, or smaller batches",
        tasks=(end.task,),
        evidence=(end.quote(f"OOMKilled, {end.words.split(', ')[-1]}"),),
    )


def _more(limit: str) -> str:
    """Half as much again, in the same unit."""
    match = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", limit)
    if match is None or amount(limit) is None:
        return ""
    return f"{float(match[1]) * 1.5:g}{match[2]}"


# --- signals


def of_signal(end: End, is_local: bool) -> Cause | None:
    """Of a program that raised no exception."""
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
    """What a library or the interpreter wrote before it gave up."""
    found = [match[0] for line in text.split("\n") if (match := re.search(_GAVE_UP, line))]
    return found[-1].strip() if found else ""
