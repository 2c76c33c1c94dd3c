"""Reasons that kubelets, containerd and Docker write into the status of a container."""

from typing import Final

CRASH_LOOP: Final = "CrashLoopBackOff"
STATUS_UNKNOWN: Final = "ContainerStatusUnknown"
"""The kubelet could not observe the end of the container: its node was rebooted, or lost it."""
BEING_SET_UP: Final = ("", "ContainerCreating", "PodInitializing")
"""Reasons for which a container that is about to start waits."""
START_ERRORS: Final = frozenset(("StartError", "ContainerCannotRun"))
"""Reasons, of containerd and Docker, of containers whose command could not be executed. Their exit code of 128 or
more is not the program's."""
PULL_FAILED: Final = "ErrImagePull"
"""The image could not be pulled just now: the next attempt may succeed."""
IMAGE_PROBLEMS: Final = frozenset(
    (
        PULL_FAILED,
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    )
)
"""Reasons of waiting containers for which an image cannot be pulled."""
