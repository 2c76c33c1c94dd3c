"""Which actions a job's page offers, and why one of them cannot be used now."""

from collections.abc import Mapping

from msgspec import Struct

from tfyard.sdk.place import Listed

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


def buttons(row: Listed, missing: Mapping[str, str], lines: Mapping[str, str]) -> list[Button]:
    """`lines`: the commands of what only the user's own machine can do."""
    return [
        Button(action, LABELS[action], missing.get(action, ""), lines.get(action, ""))
        for action in row.actions
    ]
