"""tfyard: one TensorFlow job file, run here, rendered as manifests, or kept going on Kubernetes.

    run = tfyard.run(tfyard.Job("train.py", worker=2))
    for line in run.logs(follow=True):
        print(line.task, line.text)
    run.wait()

docs/python.md tells it all. Names are imported when they are first used: `import tfyard` costs nothing.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # without importing typing; type checkers know this name
if TYPE_CHECKING:
    from tfyard import aio
    from tfyard.errors import Invalid, NoSuchJob, NotPossible, TfyardError, Usage
    from tfyard.remote.submitting.submission import CannotSubmit
    from tfyard.sdk.comparing import RunComparison
    from tfyard.sdk.functions import between, compare, find, run, runs, submit, sweep
    from tfyard.sdk.job import Job
    from tfyard.sdk.lines import Line
    from tfyard.sdk.place import Executed
    from tfyard.sdk.run import Run
    from tfyard.sdk.sweep import Sweep, SweepTrial
    from tfyard.sdk.why import JobDeleted, JobFailed, WaitTimeout, Why

__all__ = [
    "CannotSubmit",
    "Executed",
    "Invalid",
    "Job",
    "JobDeleted",
    "JobFailed",
    "Line",
    "NoSuchJob",
    "NotPossible",
    "Run",
    "RunComparison",
    "Sweep",
    "SweepTrial",
    "TfyardError",
    "Usage",
    "WaitTimeout",
    "Why",
    "__version__",
    "aio",
    "between",
    "compare",
    "find",
    "run",
    "runs",
    "submit",
    "sweep",
]

_HOMES = {
    "errors": ("Invalid", "NoSuchJob", "NotPossible", "TfyardError", "Usage"),
    "remote.submitting.submission": ("CannotSubmit",),
    "sdk.comparing": ("RunComparison",),
    "sdk.functions": ("between", "compare", "find", "run", "runs", "submit", "sweep"),
    "sdk.job": ("Job",),
    "sdk.lines": ("Line",),
    "sdk.place": ("Executed",),
    "sdk.run": ("Run",),
    "sdk.sweep": ("Sweep", "SweepTrial"),
    "sdk.why": ("JobDeleted", "JobFailed", "WaitTimeout", "Why"),
}


if not TYPE_CHECKING:  # with it, a type checker would accept any name

    def __getattr__(name):
        from importlib import import_module  # `import tfyard` loads nothing

        if name == "aio":
            return import_module("tfyard.aio")
        for module, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"tfyard.{module}"), name)
                return found
        raise AttributeError(f"module 'tfyard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: object) -> None:
    """`%load_ext tfyard`: the cell magic `%%tfyard`."""
    from tfyard.sdk import magic  # `import tfyard` loads nothing

    magic.load(shell)
