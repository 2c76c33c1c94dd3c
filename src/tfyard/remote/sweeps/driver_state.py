"""Whether the Job of a sweep drives it, and what keeps it from that, as its pod and its events say it."""

import time

from tfyard.kube import KubeError, requests
from tfyard.kube.sync import SyncClient
from tfyard.model.callbacks import Say
from tfyard.model.container_reasons import BEING_SET_UP
from tfyard.model.names import SWEEP
from tfyard.remote.reading import views
from tfyard.views.objects import LONG_AGO
from tfyard.views.pods import PodView

from . import store
from .driver_job import DRIVER, DriverPod
from .store import SweepObject

BEGINS_WITHIN = 20.0
LOOK_EVERY = 0.5


def wait_for_begin(client: SyncClient, sweep: SweepObject, pod: DriverPod, say: Say) -> None:
    """Wait a moment for what the driver says of its permissions, if it is not known whether the role is bound."""
    end = time.monotonic() + (0 if pod.is_bound else BEGINS_WITHIN)
    while time.monotonic() < end:
        if not store.read_again(client, sweep).is_waited_for:
            return
        if text := trouble(client, sweep):
            say(
                f"{text}; if it lacks permissions, an administrator allows it by `{pod.binding(sweep.namespace)}`"
            )
            return
        time.sleep(LOOK_EVERY)


def trouble(client: SyncClient, sweep: SweepObject) -> str:
    """Why nothing drives it, as the pod of its driver says it, or the last event about its Job; empty: that is not
    known."""
    of = requests.selecting(labels={SWEEP: sweep.name})
    try:
        pods = views.list_pods(client, sweep.namespace, of)
        drivers = [pod for pod in pods if pod.trainer.name == DRIVER]
        newest = max(drivers, key=lambda pod: pod.metadata.creation_timestamp or LONG_AGO, default=None)
        return _trouble(newest) if newest else _without_pod(client, sweep)
    except KubeError:
        return ""


def _without_pod(client: SyncClient, sweep: SweepObject) -> str:
    """Why its Job has no pod."""
    about = requests.selecting(fields={"involvedObject.kind": "Job", "reason": "FailedCreate"})
    events = client.send(requests.get(requests.EVENTS.path(sweep.namespace), about))["items"]
    own = (each for each in events if each["involvedObject"]["name"].startswith(f"{sweep.name}-{DRIVER}-"))
    texts = [f"its driver has no pod: {each.get('message')}" for each in own]
    return texts[-1] if texts else ""


def _trouble(pod: PodView) -> str:
    name, program = pod.metadata.name, pod.program
    for state in (program.last_state, program.state):
        end, waiting = state.terminated, state.waiting
        if end is not None and end.has_failed:
            *_, last = end.message.strip().splitlines() or [f"exit code {end.exit_code}"]
            return f"its driver, the pod {name}, has failed: {last}"
        if waiting is not None and waiting.reason not in BEING_SET_UP:
            return f"its driver, the pod {name}, does not start: {waiting.reason}"
    refusal = pod.unscheduled
    return f"its driver, the pod {name}, waits for a node: {refusal.message}" if refusal else ""
