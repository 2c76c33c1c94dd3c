"""Which actions a job's page offers, and why one of them cannot be used now."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard.overview.job_table import state
from tfyard.sdk.place import Listed

CUT_OFF = ("Stopped", "Interrupted", "Killed")
LABELS = {
    "stop": "Stop",
    "resume": "Resume",
    "restart": "Restart tasks",
    "scale": "Scale",
    "rerun": "Rerun",
    "delete": "Delete",
    "tensorboard": "TensorBoard",
    "notebook": "Notebook",
}
PAGES = ("tensorboard", "notebook")
"""Actions that open another page."""


class Button(Struct, frozen=True):
    action: str
    label: str
    why_not: str = ""
    """Why it cannot be pressed: a permission is missing; empty: it can."""
    line: str = ""
    """The command that does it on the user's own machine, where no button can."""


def offered(row: Listed) -> tuple[str, ...]:
    """What makes sense in the state of a job. Runs on this machine cannot be scaled, and are deleted once over."""
    is_local, now = not row.job.namespace, state(row.job)
    if row.sweep is not None:
        return ("stop",) if not row.is_over else ("resume", "delete") if now in CUT_OFF else ("delete",)
    pages = ("tensorboard",) if is_local else PAGES
    if row.is_over:
        again = ("resume",) if is_local and now in CUT_OFF else ()
        return (*again, "rerun", "delete", *pages)
    if now == "Suspended":
        return ("resume", "scale", "rerun", "delete", *pages)
    more = () if is_local else ("scale",)
    return ("stop", "restart", *more, "rerun", *(() if is_local else ("delete",)), *pages)


def buttons(row: Listed, missing: Mapping[str, str], lines: Mapping[str, str]) -> list[Button]:
    """`lines`: the commands of what only the user's own machine can do."""
    return [
        Button(action, LABELS[action], missing.get(action, ""), lines.get(action, ""))
        for action in offered(row)
    ]
