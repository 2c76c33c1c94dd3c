"""Exit codes that end a task, as lists for Kubernetes and for scripts in pods."""

import pytest

from tfyard.model import RestartPolicy
from tfyard.model.exit_codes import permanent


@pytest.mark.parametrize(
    ("policy", "codes"),
    [
        ("Never", range(1, 256)),
        ("ExitCode", range(1, 128)),
        ("OnFailure", range(0)),
        ("Always", range(0)),
    ],
)
def test_the_permanent_codes_of_each_restart_policy(policy: RestartPolicy, codes: range) -> None:
    assert permanent(policy) == list(codes)
