"""Which tasks decide that a job runs, has succeeded or has failed."""

import pytest

from tfyard.model import Job, Pod, Task

from .builders import (
    begun,
    chief,
    evaluator,
    job,
    look,
    master,
    pod,
    pods,
    role,
    servers,
    shown,
    workers,
)

SUCCEEDS = {
    "a chief that is done ends the job, whatever the others do": (
        job(chief(), workers(2), servers(1), evaluator()),
        [pod("chief-0", "Succeeded"), *pods("worker-0", "worker-1", "ps-0", "evaluator-0")],
    ),
    "a master counts as a chief": (
        job(master(), workers(1)),
        [pod("master-0", "Succeeded"), pod("worker-0")],
    ),
    "without a chief worker 0 ends the job": (
        job(workers(3)),
        [pod("worker-0", "Succeeded"), *pods("worker-1", "worker-2")],
    ),
    "AllWorkers ends with the last worker": (
        job(workers(2), servers(1), success="AllWorkers"),
        [*pods("worker-0", "worker-1", phase="Succeeded"), pod("ps-0")],
    ),
    "AllWorkers means nothing where a chief decides": (
        job(chief(), workers(2), success="AllWorkers"),
        [pod("chief-0", "Succeeded"), *pods("worker-0", "worker-1")],
    ),
    "a chief's success outweighs the workers that die of losing it": (
        job(chief(), workers(1)),
        [pod("chief-0", "Succeeded"), pod("worker-0", "Failed", exit_code=1)],
    ),
    "a chief of 0 replicas has no word: worker 0 decides": (
        job(chief(replicas=0), workers(2)),
        [pod("worker-0", "Succeeded"), pod("worker-1")],
    ),
    "an evaluator alone ends its own job": (job(evaluator()), [pod("evaluator-0", "Succeeded")]),
    "a chief named by the format decides alone": (
        job(workers(3), chief=Task("Worker", 2)),
        [pod("worker-2", "Succeeded"), *pods("worker-0", "worker-1")],
    ),
    "a parameter server named as chief decides alone": (
        job(workers(1), servers(1), chief=Task("PS", 0)),
        [pod("ps-0", "Succeeded"), pod("worker-0")],
    ),
}

GOES_ON = {
    "workers that are done do not end a job that has a chief": (
        job(chief(), workers(2)),
        [pod("chief-0"), *pods("worker-0", "worker-1", phase="Succeeded")],
    ),
    "worker 1 alone does not end the job": (job(workers(2)), [pod("worker-0"), pod("worker-1", "Succeeded")]),
    "AllWorkers waits for every worker": (
        job(workers(2), success="AllWorkers"),
        [pod("worker-0", "Succeeded"), pod("worker-1")],
    ),
    "a named chief's neighbours do not end the job": (
        job(workers(2), chief=Task("Worker", 1)),
        [pod("worker-0", "Succeeded"), pod("worker-1")],
    ),
    "an evaluator that is done does not end the training": (
        job(workers(1), evaluator()),
        [pod("worker-0"), pod("evaluator-0", "Succeeded")],
    ),
    "a failed elastic worker is not missed": (
        job(chief(), workers(2), dynamic_workers=True),
        [pod("chief-0"), pod("worker-0"), pod("worker-1", "Failed", exit_code=1)],
    ),
    "in v1alpha1 a failed worker leaves the job to its chief": (
        job(master(), workers(1), fails_with="chief"),
        [pod("master-0"), pod("worker-0", "Failed", exit_code=1)],
    ),
    "in v1alpha1 a failed neighbour of the named chief is not the job's failure": (
        job(workers(2), fails_with="chief", chief=Task("Worker", 1)),
        [pod("worker-0", "Failed", exit_code=1), pod("worker-1")],
    ),
    "in v1alpha1 the failed neighbour of worker 0, the usual chief, is not the job's failure either": (
        job(workers(2), servers(1), fails_with="chief"),
        [pod("worker-0"), pod("worker-1", "Failed", exit_code=1), pod("ps-0")],
    ),
    "a worker on a node that is silent is not failed": (job(workers(1)), [pod("worker-0", "Unknown")]),
}

FAILS = {
    "a failed worker fails the job though its chief runs": (
        job(chief(), workers(1)),
        [pod("chief-0"), pod("worker-0", "Failed", exit_code=1)],
    ),
    "a failed parameter server fails the job": (
        job(workers(1), servers(1)),
        [pod("worker-0"), pod("ps-0", "Failed", exit_code=1)],
    ),
    "a failed evaluator fails the job": (
        job(workers(1), evaluator()),
        [pod("worker-0"), pod("evaluator-0", "Failed", exit_code=1)],
    ),
    "an elastic job is still failed by its chief": (
        job(chief(), workers(1), dynamic_workers=True),
        [pod("chief-0", "Failed", exit_code=1), pod("worker-0")],
    ),
    "an elastic job is still failed by its parameter server": (
        job(chief(), workers(1), servers(1), dynamic_workers=True),
        [*pods("chief-0", "worker-0"), pod("ps-0", "Failed", exit_code=1)],
    ),
    "in v1alpha1 the chief's failure is the job's": (
        job(master(), workers(1), fails_with="chief"),
        [pod("master-0", "Failed", exit_code=1), pod("worker-0")],
    ),
    "in v1alpha1 the named chief's failure is the job's": (
        job(workers(2), fails_with="chief", chief=Task("Worker", 1)),
        [pod("worker-0"), pod("worker-1", "Failed", exit_code=1)],
    ),
    "in v1alpha1 worker 0 is the chief where there is no other": (
        job(workers(2), fails_with="chief"),
        [pod("worker-0", "Failed", exit_code=1), pod("worker-1")],
    ),
    "AllWorkers fails with any worker": (
        job(workers(2), success="AllWorkers"),
        [pod("worker-0", "Succeeded"), pod("worker-1", "Failed", exit_code=1)],
    ),
}

CASES = [
    pytest.param(job, seen, phase, id=sentence)
    for phase, table in (("Succeeded", SUCCEEDS), ("Failed", FAILS), ("", GOES_ON))
    for sentence, (job, seen) in table.items()
]


@pytest.mark.parametrize(("job", "seen", "end"), CASES)
def test_the_leaders_decide_how_the_job_ends(job: Job, seen: list[Pod], end: str) -> None:
    status = look(job, *seen, status=begun(job)).status
    assert [status.has("Succeeded"), status.has("Failed")] == [end == "Succeeded", end == "Failed"]
    assert (status.completion_time is not None) == bool(end)
    assert end in ("", status.phase)


RUNS = {
    "a running chief makes the job run": (job(chief(), workers(1)), pods("chief-0"), True),
    "workers do not make the job run while its chief waits": (
        job(chief(), workers(1)),
        [pod("chief-0", "Pending"), pod("worker-0")],
        False,
    ),
    "any running worker makes the job run": (
        job(workers(2), servers(1)),
        [pod("worker-0", "Pending"), pod("worker-1")],
        True,
    ),
    "parameter servers do not make the job run": (job(workers(1), servers(1)), pods("ps-0"), False),
    "parameter servers alone run too": (job(servers(1)), pods("ps-0"), True),
    "pending pods do not make the job run": (job(workers(1)), [pod("worker-0", "Pending")], False),
}


@pytest.mark.parametrize(("job", "seen", "runs"), RUNS.values(), ids=RUNS.keys())
def test_a_job_runs_as_soon_as_its_leaders_do(job: Job, seen: list[Pod], runs: bool) -> None:
    status = look(job, *seen, status=begun(job)).status
    assert status.has("Running") == runs
    assert status.phase == ("Running" if runs else "Created")


def test_a_job_whose_roles_are_all_empty_waits_instead_of_looping_or_succeeding() -> None:
    empty = job(workers(0), servers(0))
    first = look(empty)
    assert first.actions == ()
    again = look(empty, status=first.status)
    assert (again.status, again.actions) == (first.status, ())
    assert shown(again.status) == ["Created=True (TFJobCreated)"]


def test_a_finished_worker_whose_pod_vanished_still_counts_for_success() -> None:
    both = job(workers(2), success="AllWorkers")
    one_done = look(both, pod("worker-0", "Succeeded"), pod("worker-1"), status=begun(both)).status
    status = look(both, pod("worker-1", "Succeeded"), status=one_done).status
    assert status.has("Succeeded")


def test_scaling_below_the_number_that_is_done_ends_the_job() -> None:
    three = job(workers(3), success="AllWorkers")
    seen = [*pods("worker-0", "worker-1", phase="Succeeded"), pod("worker-2")]
    done = look(three, *seen, status=begun(three)).status
    assert look(job(workers(2), success="AllWorkers"), *seen, status=done).status.has("Succeeded")


def test_tasks_that_still_run_when_the_job_succeeds_are_counted_as_succeeded() -> None:
    trained = job(workers(1), role("PS", 2))
    seen = [pod("worker-0", "Succeeded"), *pods("ps-0", "ps-1")]
    counts = look(trained, *seen, status=begun(trained)).status.replica_statuses
    assert [(c.active, c.succeeded) for c in counts.values()] == [(0, 1), (0, 2)]


RESULTS = {
    "workers that are stopped, and a server": (
        job(workers(3), servers(1), clean="Running"),
        [pod("worker-0", "Succeeded"), *pods("worker-1", "worker-2", "ps-0")],
        {"Worker": ("1/3, 2 stopped", 3), "PS": ("0/1, 1 stopped", 1)},
    ),
    "one that has not begun is stopped, too": (
        job(workers(2), clean="All"),
        [pod("worker-0", "Succeeded"), pod("worker-1", "Pending")],
        {"Worker": ("1/2, 1 stopped", 1)},
    ),
    "who may go on is not stopped": (
        job(workers(2), clean="None"),
        [pod("worker-0", "Succeeded"), pod("worker-1", ready=True)],
        {"Worker": ("2/2", 2)},
    ),
    "an evaluator in its grace period goes on": (
        job(workers(1), evaluator(), clean="Running", evaluator_grace=60),
        [pod("worker-0", "Succeeded"), pod("evaluator-0", ready=True)],
        {"Worker": ("1/1", 1), "Evaluator": ("1/1", 1)},
    ),
    "one fails the job, and the other is stopped": (
        job(workers(2), clean="Running"),
        [pod("worker-0", "Failed", exit_code=1), pod("worker-1", ready=True)],
        {"Worker": ("0/2, 1 failed, 1 stopped", 0)},
    ),
}


@pytest.mark.parametrize("case", RESULTS)
def test_the_end_of_a_job_shows_what_became_of_its_tasks_and_counts_as_upstream_does(case: str) -> None:
    asked, there, expected = RESULTS[case]
    roles = look(asked, *there, status=begun(asked)).status.replica_statuses
    assert {name: (each.ready, each.succeeded) for name, each in roles.items()} == expected
