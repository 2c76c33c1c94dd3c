"""Remarks of `logs` between the lines of programs."""

from collections.abc import Iterator, Mapping

from tfyard.logs.lines import Lines, LogEvent, Remark, Start
from tfyard.model import Ending, Status


def restarted(start: Start, before: Ending | None) -> Remark:
    why = f": {_how(before)}" if before else ""
    return Remark(kind="restarted", text=f"restarted{why}", start=start)


def ended(start: Start, ending: Ending) -> Remark:
    return Remark(kind="ended", text=f"ended: {_how(ending)}", start=start)


def of_init_container(start: Start, ending: Ending | None) -> Remark:
    """The remark before the log of an init container, which stands in the place of the program's."""
    how = f"failed ({_how(ending)})" if ending else "runs"
    text = f"has not started: its init container {start.container} {how}; this is the log of that"
    return Remark(kind="init-container", text=text, start=start)


def of_sidecar(start: Start, container: str, ending: Ending) -> Remark:
    text = f"its container {container} failed: {_how(ending)}"
    return Remark(kind="sidecar", text=text + (f"\n{ending.message}" if ending.message else ""), start=start)


def stored(start: Start, ending: Ending) -> Remark:
    """The remark about a start whose log is gone: how it ended, from the job's status."""
    who = f"its init container {ending.container}" if ending.container else "it"
    text = f"its log is gone; {who} ended: {_how(ending)}"
    return Remark(kind="ending", text=text + (f"\n{ending.message}" if ending.message else ""), start=start)


def unless_removed(log: Iterator[LogEvent], start: Start, ending: Ending | None) -> Iterator[LogEvent]:
    """The log, or the ending in its place: when a pod ends, a kubelet removes the container before the last one,
    and answers with a line of its own."""
    has_lines = False
    for event in log:
        has_lines = has_lines or isinstance(event, Lines)
        is_removed = isinstance(event, Remark) and event.kind == "kubelet" and not has_lines
        yield stored(start, ending) if is_removed and ending else event


def gone(start: Start, fate: str = "") -> Remark:
    """`fate`: what became of the task, if that is known."""
    texts = {
        "Succeeded": "has succeeded; its log is gone with its pod",
        "Stopped": "was stopped when the job ended; its log is gone with its pod",
    }
    text = texts.get(fate, "no log: it never started, or its pod is gone")
    return Remark(kind="gap", text=text, start=start)


def rotated(start: Start, after: bytes, before: bytes) -> Remark:
    text = f"lines between {_clock(after)} and {_clock(before)} may be missing: the log was rotated"
    return Remark(kind="gap", text=text, start=start)


def missed(start: Start, after: bytes, why: str) -> Remark:
    since = f"lines after {_clock(after)}" if after else "lines"
    return Remark(kind="gap", text=f"{since} may be missing: {why}", start=start)


def waiting(status: Status, unstarted: Mapping[str, str], tasks: int) -> str:
    """Why tasks have not started, from the job's conditions, else from the first pod with a reason. Empty: all
    have started."""
    if not unstarted:
        return ""
    holding = [each for each in status.conditions if each.status == "True"]
    reason = next((each.message for each in holding if each.type in ("Blocked", "Waiting")), "")
    if not reason and status.has("Suspended"):
        reason = "the job is suspended"
    first = next(((task, why) for task, why in unstarted.items() if why), None)
    if not reason:
        reason = f"{first[0]}: {first[1]}" if first else "no pods yet"
    return f"{_count(list(unstarted), tasks)}: {reason}"


def _count(unstarted: list[str], tasks: int) -> str:
    if len(unstarted) == tasks:
        return "waiting"
    return (
        f"waiting for {unstarted[0]}"
        if len(unstarted) == 1
        else f"waiting for {len(unstarted)} of {tasks} tasks"
    )


def _how(ending: Ending) -> str:
    code = "" if ending.exit_code is None else f"exit code {ending.exit_code}"
    reason = "" if ending.reason in ("Error", "Completed") and code else ending.reason
    return ", ".join(part for part in (reason, code) if part) or "for an unknown reason"


def _clock(stamp: bytes) -> str:
    return stamp[11:23].decode()
