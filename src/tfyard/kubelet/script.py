"""What a pod does, as data."""

from collections.abc import Callable, Mapping

import msgspec

from tfyard.kubelet.runtime import Pod


class Sidecar(msgspec.Struct, frozen=True):
    """A container beside the main one, with an end of its own."""

    run_on: float | None = None
    """How long it runs on when the main container has ended for good; without it, until it is stopped. The kubelet
    stops it by itself if it is among the init containers."""
    exit_code: int = 0
    restarts: int = 0
    """How often it had to be started again."""


class Script(msgspec.Struct, frozen=True):
    """Times are seconds. The main container (`tensorflow`, else the first) exits with the codes; the others
    exit with 0 at the same time, except sidecars. The pod's own restartPolicy decides whether a run is followed
    by another."""

    start_after: float = 0.0
    """Pending for this long: an image is being pulled."""
    run_for: float | None = None
    """How long each run takes; without it, until `kubelet.finish`."""
    exit_codes: tuple[int, ...] = (0,)
    """Of the first run, the second, …; the last one repeats."""
    exit_reason: str = ""
    """Such as OOMKilled; by default Completed or Error."""
    ready_after: float = 0.0
    init_exit_code: int = 0
    waiting: str = ""
    """Never starts, for this reason: ImagePullBackOff, CreateContainerConfigError, …"""
    message: str = ""
    """What the kubelet says of a wait, or the last words of a program that fails."""
    restart_after: float = 0.0
    """The kubelet's own back-off between two runs, spent in CrashLoopBackOff; its first restart is immediate."""
    stop_after: float = 0.0
    """How long it takes to end after SIGTERM, and with which code: 143 if it has no handler."""
    stop_exit_code: int = 143
    rejected: str = ""
    """The kubelet does not admit it, for this reason: OutOfcpu, Evicted, …"""
    sidecars: Mapping[str, Sidecar] = {}
    """By container; those among the init containers need no script."""

    def exit_code(self, run: int) -> int:
        return self.exit_codes[min(run, len(self.exit_codes) - 1)]


Scripts = Script | Callable[[Pod], Script]


def will_restart(pod: Pod, exit_code: int) -> bool:
    policy = pod.spec.restart_policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
