"""What is read of a pod, whatever somebody wrote into it."""

import pytest

from tfyard.backends.kubernetes.pods import to_pod
from tfyard.backends.kubernetes.views import Meta, PodView
from tfyard.model.names import ATTEMPT, REPLICA_INDEX, REPLICA_TYPE


@pytest.mark.parametrize(
    ("text", "attempt"), [("3", 3), ("", 0), ("-1", 0), ("three", 0), ("²", 0), ("9" * 5000, 0)]
)
def test_an_attempt_that_is_no_number_is_the_first(text: str, attempt: int) -> None:
    labels = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
    pod = to_pod(PodView(Meta("train-worker-0", labels=labels, annotations={ATTEMPT: text})))
    assert pod is not None
    assert pod.attempt == attempt
