"""What `logs` says between the lines of programs."""

from collections.abc import Mapping

from tfyard.model import Ending, Status
from tfyard.overview.log_lines import Said, Start


def restarted(start: Start, before: Ending | None) -> Said:
    why = f": {_how(before)}" if before else ""
    return Said(kind="restarted", text=f"restarted{why}", start=start)


def ended(start: Start, ending: Ending) -> Said:
    return Said(kind="ended", text=f"ended: {_how(ending)}", start=start)


def stored(start: Start, ending: Ending) -> Said:
    """Of a start whose log is gone: what the job itself remembers."""
    text = f"its log is gone; it ended: {_how(ending)}"
    return Said(kind="ending", text=text + (f"\n{ending.message}" if ending.message else ""), start=start)


def gone(start: Start) -> Said:
    return Said(kind="gap", text="no log: it never started, or its pod is gone", start=start)


def rotated(start: Start, after: bytes, before: bytes) -> Said:
    text = f"lines between {_clock(after)} and {_clock(before)} may be missing: the log was rotated"
    return Said(kind="gap", text=text, start=start)


def missed(start: Start, after: bytes, why: str) -> Said:
    since = f"lines after {_clock(after)}" if after else "lines"
    return Said(kind="gap", text=f"{since} may be missing: {why}", start=start)


def waiting(status: Status, unstarted: Mapping[str, str], tasks: int) -> str:
    """Why tasks have not started: in the operator's words, else in those of the first pod that has some. Empty:
    all have."""
    if not unstarted:
        return ""
    holding = [each for each in status.conditions if each.status == "True"]
    told = next((each.message for each in holding if each.type in ("Blocked", "Waiting")), "")
    if not told and status.has("Suspended"):
        told = "the job is suspended"
    first = next(((task, why) for task, why in unstarted.items() if why), None)
    if not told:
        told = f"{first[0]}: {first[1]}" if first else "no pods yet"
    return f"{_count(list(unstarted), tasks)}: {told}"


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
