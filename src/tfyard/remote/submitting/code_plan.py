"""Plan for the code of a job that is to be submitted, as a value."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from tfyard.job_input.code_folder import CodeFolder
from tfyard.model import Job, Manifest
from tfyard.overview.wording import harmless, size

Progress = Callable[[int, int], None]
"""Bytes of the files that have been sent, and of all."""


class CodeOptions(Struct, frozen=True, kw_only=True):
    helper_image: str = ""
    claim_size: str = "10Gi"
    leave_out: str = ""
    """A folder that is no code, such as the one for the outputs."""


class Plan(Struct, frozen=True, kw_only=True):
    job: Job
    """Job whose pods get their code, ready to be rendered."""
    kind: Literal["config-map", "claim", "none"] = "none"
    hash: str = ""
    files: int = 0
    size: int = 0
    largest: tuple[tuple[str, int], ...] = ()
    """Paths of the five largest files, and their bytes."""
    objects: tuple[Manifest, ...] = ()
    """Objects to be created before the code is sent, without those that exist."""
    notes: tuple[str, ...] = ()
    """Notes for the user, before the code is sent."""
    holder: str = ""
    """The name of the ConfigMap or the claim."""
    is_present: bool = False
    """Nothing needs to be sent."""
    folder: CodeFolder | None = None
    sums: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    """Packages on the claim that the job uses, as `packages/NAME`."""
    outdated: tuple[str, ...] = ()
    """Code (hashes) and layers on the claim that no job uses."""
    node: str = ""
    """Node of the claim, if only one node can use it."""
    helper_image: str = ""


def summary_lines(plan: Plan) -> list[str]:
    """Text about the code and its destination, before it is sent."""
    if plan.kind == "none":
        return []
    largest = ", ".join(f"{harmless(path)} {size(count)}" for path, count in plan.largest)
    files = f"{plan.files} {'file' if plan.files == 1 else 'files'}, {size(plan.size)}"
    where = f"the ConfigMap {plan.holder}" if plan.kind == "config-map" else f"the claim {plan.holder}"
    how = f"is in {where} already, nothing is sent" if plan.is_present else f"goes into {where}"
    return [f"code: {files} ({largest})", f"code: {plan.hash[:12]} {how}", *plan.notes]
