"""Jobs as rows of a list, each with what can be done to it in its state."""

from tfyard.model.summary import JobSummary
from tfyard.model.sweep import SweepState
from tfyard.overview.job_table import CUT_OFF, state
from tfyard.sdk.place import Listed


def of_run(job: JobSummary, *, is_over: bool) -> Listed:
    """A run on this machine. Its tasks know each other from the start, so it cannot be scaled."""
    actions = ("rerun", "delete") if is_over else ("stop", "restart", "rerun")
    resume = ("resume",) if is_over and state(job) in CUT_OFF else ()
    return Listed(f"run/{job.name}", job, is_over, actions=(*resume, *actions, "tensorboard"))


def of_tfjob(title: str, job: JobSummary) -> Listed:
    is_over, actions = job.status.is_finished, ("rerun", "delete")
    if not is_over:
        more = ("resume",) if state(job) == "Suspended" else ("stop", "restart")
        actions = (*more, "scale", *actions)
    return Listed(title, job, is_over, actions=(*actions, "tensorboard", "notebook"))


def of_sweep(title: str, job: JobSummary, sweep: SweepState) -> Listed:
    """A sweep, here or on a cluster."""
    is_over = sweep.phase != "Running"
    actions = ("stop",) if not is_over else ("resume", "delete") if sweep.phase in CUT_OFF else ("delete",)
    return Listed(title, job, is_over, sweep, actions)
