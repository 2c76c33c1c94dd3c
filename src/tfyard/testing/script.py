"""Behaviour of a pod, as data."""

from collections.abc import Callable, Mapping

import msgspec

from tfyard.model.exit_codes import restarts_in_place
from tfyard.views.pods import PodOnNode

Pod = PodOnNode
"""A pod as a script sees it."""


class Sidecar(msgspec.Struct, frozen=True):
    """A container beside the main one, with an end of its own."""

    run_on: float | None = None
    """Seconds that it runs on when the main container has ended for good; None: until it is stopped. The kubelet
    stops it by itself if it is among the init containers."""
    exit_code: int = 0
    restarts: int = 0
    """Number of its restarts."""


class Script(msgspec.Struct, frozen=True):
    """Behaviour of a pod; times are in seconds. The main container (`tensorflow`, else the first) exits with the
    codes; the others exit with 0 at the same time, except sidecars. The pod's own restartPolicy decides whether a
    run is followed by another."""

    start_after: float = 0.0
    """Time for which the pod is Pending: an image is being pulled."""
    run_for: float | None = None
    """Length of each run; None: until `kubelet.finish`."""
    exit_codes: tuple[int, ...] = (0,)
    """Exit codes of the first run, the second, …; the last one repeats."""
    exit_reason: str = ""
    """Reason of the end, such as OOMKilled; by default Completed or Error."""
    ready_after: float = 0.0
    init_exit_code: int = 0
    waiting: str = ""
    """The pod never starts, for this reason: ImagePullBackOff, CreateContainerConfigError, …"""
    message: str = ""
    """The kubelet's message about a wait, or the termination message of a program that fails."""
    restart_after: float = 0.0
    """The kubelet's own back-off between two runs, spent in CrashLoopBackOff; its first restart is immediate."""
    phase_lag: float = 0.0
    """Time for which a pod is still Running when its main container has ended: a kubelet changes the phase when
    nothing of the pod is left, and restarts a container a moment after its end."""
    stop_after: float = 0.0
    """Time that the pod takes to end after SIGTERM; then its exit code: 143 without a handler."""
    stop_exit_code: int = 143
    rejected: str = ""
    """The kubelet does not admit the pod, for this reason: OutOfcpu, Evicted, …"""
    sidecars: Mapping[str, Sidecar] = {}
    """Sidecars by container; those among the init containers need no script."""

    def exit_code(self, run: int) -> int:
        return self.exit_codes[min(run, len(self.exit_codes) - 1)]


Scripts = Script | Callable[[Pod], Script]


def will_restart(pod: Pod, exit_code: int) -> bool:
    return restarts_in_place(pod.spec.restart_policy, exit_code)
