"""A job whose names belong to another job waits, and reports that job."""

from .builders import begun, created, deleted, job, look, pods, told, workers

OTHER = "tfjobs.kubeflow.org"
TEXT = (
    "tfjobs.kubeflow.org/mnist has the same name, so pods and Services of both would have the same names;"
    " delete or rename one of them"
)


def test_the_second_job_creates_nothing_and_says_why() -> None:
    asked = job(workers(2))
    decision = look(asked, namesake=OTHER)
    assert (decision.actions, decision.status.phase) == ((), "Blocked")
    assert told(decision) == [("Warning", "NameTaken", TEXT)]
    again = look(asked, status=decision.status, namesake=OTHER)
    assert (again.status, again.events, again.actions) == (decision.status, (), ())


def test_the_second_job_starts_when_the_names_are_free() -> None:
    asked = job(workers(2))
    held = look(asked, namesake=OTHER).status
    decision = look(asked, status=held)
    assert created(decision) == ["mnist-worker-0", "mnist-worker-1"]
    assert not decision.status.has("Blocked")


def test_its_suspension_and_its_end_do_not_wait_for_the_names() -> None:
    asked = job(workers(1), suspend=True)
    assert look(asked, namesake=OTHER).status.phase == "Suspended"
    late = job(workers(1), deadline=1)
    assert look(late, namesake=OTHER).wake_after == 2
    done = begun(job(workers(1)), *pods("worker-0", phase="Succeeded"))
    assert deleted(look(job(workers(1), clean="All"), *pods("worker-0", phase="Succeeded"), status=done))
