"""Sentences about programs that ended because other tasks were taken away."""

from tfyard.model import Ending
from tfyard.overview.lost_peers import sentences


def ending(task: str, code: int | None, peer: str = "worker-1") -> Ending:
    return Ending(task=task, attempt=1, exit_code=code, peer=peer)


def test_tasks_that_saved_and_tasks_that_failed_have_a_sentence_each() -> None:
    ends = [
        ending("worker-0", 42),
        ending("worker-2", 42),
        ending("worker-3", 1),
        ending("worker-4", None),
        ending("ps-0", 42, ""),
    ]
    assert list(sentences(ends)) == [
        "worker-0 and worker-2 saved a checkpoint and ended with code 42, as TensorFlow's"
        " PreemptionCheckpointHandler does: worker-1 was evicted or deleted; that costs no retry",
        "worker-3 and worker-4 failed because worker-1 was evicted or deleted; that costs no retry",
    ]
    assert list(sentences(ends[-1:])) == []
