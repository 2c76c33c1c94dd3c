"""What exit codes say, and which are worth another try.

The operator and local runs call `may_restart`. Rendered Jobs, and the scripts in their pods, get the list of
permanent codes, which follows from the same rule; what users read about the rule is here, too.
"""

from .job import RestartPolicy

SIGNALLED = 128
"""Shells and container runtimes report death by signal N as 128 + N."""
SIGKILLED = SIGNALLED + 9
FIRST_RETRYABLE = SIGNALLED
"""The program was killed, so another try may succeed."""
RETRYABLE = f"exit codes of {FIRST_RETRYABLE} and more"
"""In the words of help texts, schemas and CRDs."""
_LARGEST = 255


def may_restart(policy: RestartPolicy, exit_code: int | None) -> bool:
    if policy == "ExitCode":
        return exit_code is None or exit_code >= FIRST_RETRYABLE
    return policy != "Never"


def permanent(policy: RestartPolicy) -> list[int]:
    """Every code after which a task is not run again."""
    return [code for code in range(1, _LARGEST + 1) if not may_restart(policy, code)]
