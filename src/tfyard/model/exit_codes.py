"""Which exit codes are retryable, and the text that users read about it.

The operator and local runs call `may_restart`. Rendered Jobs, and the scripts in their pods, get the list of
permanent codes, which follows from the same rule.
"""

from .job import RestartPolicy

SIGNALLED = 128
"""Shells and container runtimes report death by signal N as 128 + N."""
SIGKILLED = SIGNALLED + 9
FIRST_RETRYABLE = SIGNALLED
"""From this code on, the program was killed, so a restart may succeed."""
CHECKPOINTED = 42
SAVED = frozenset((CHECKPOINTED, SIGNALLED + 15))
"""Codes with which TensorFlow's PreemptionCheckpointHandler ends all workers when one of them is asked to stop:
they have saved a checkpoint and want to be run again. It is 42, and 143 on Google's cloud. While no task is taken
away, they are ordinary codes: any program may choose them."""
RETRYABLE = f"exit codes of {FIRST_RETRYABLE} and more"
"""The rule as text in help, schemas and CRDs."""
_LARGEST = 255


def may_restart(policy: RestartPolicy, exit_code: int | None) -> bool:
    if policy == "ExitCode":
        return exit_code is None or exit_code >= FIRST_RETRYABLE
    return policy != "Never"


def permanent(policy: RestartPolicy) -> list[int]:
    """All exit codes after which a task is not restarted."""
    return [code for code in range(1, _LARGEST + 1) if not may_restart(policy, code)]


def restarts_in_place(policy: str, exit_code: int, own_policy: str = "", *, is_init: bool = False) -> bool:
    """Whether a kubelet starts a container again, by its own restart policy or else its pod's. An init container
    that succeeded is done, unless its own policy makes it a sidecar."""
    chosen = own_policy or ("OnFailure" if is_init and policy == "Always" else policy)
    return chosen == "Always" or (chosen == "OnFailure" and exit_code != 0)
