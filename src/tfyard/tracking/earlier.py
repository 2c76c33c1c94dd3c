"""Reports what earlier runs of a folder could not: tfyard was killed together with its reporter, or the server was
away until the end."""

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.tracking.client import MLflowRefused, MLflowServer, MLflowUnreachable
from tfyard.tracking.delivery import Delivery
from tfyard.tracking.orders import KEPT, TrackedRun, kept


def catch_up(server: MLflowServer, runs: Path) -> None:
    """Send what earlier runs have not delivered. If several share one run of MLflow, only the last counts. Runs of
    other servers are left alone: the credentials here are not for those."""
    newest: dict[str, tuple[Path, TrackedRun]] = {}
    for path in sorted(runs.glob(f"*/{KEPT}"), key=_changed):
        if (state := kept(path.parent)) is not None:
            newest[state.run or path.parent.name] = path.parent, state
    for directory, state in newest.values():
        if state.order.uri == server.uri and not state.is_over:
            _deliver(server, directory, state)


def _deliver(server: MLflowServer, directory: Path, state: TrackedRun) -> None:
    record = RunDirectory(directory).load()
    if record is None or record.ended is None:
        return
    state = replace(state, order=replace(state.order, directory=str(directory)))  # it may have been moved
    with (
        suppress(MLflowRefused, MLflowUnreachable, FileNotFoundError),
        (directory / "metrics.jsonl").open("rb") as feed,
    ):
        delivery = Delivery(server, state, feed.fileno())
        if not state.run:
            delivery.begin()
            delivery.log_parameters()
        delivery.end(record.phase, record.ended.timestamp(), {"tfyard.phase": record.phase})


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
