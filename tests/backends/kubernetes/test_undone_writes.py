"""Writes that are undone wait longer each time: objects that come back changed, and those that do not last."""

from itertools import count
from typing import Any

from tfyard.backends.kubernetes.undone_writes import (
    ATTEMPT_LOST,
    LABELS_MISSING,
    UNDONE,
    ChangedObject,
    UndoneWrites,
    check,
    is_restart,
    postponed,
)
from tfyard.kube import TooManyRequests, Unreachable
from tfyard.kube.errors import build_error
from tfyard.model import Action, Amend, Create, Delete
from tfyard.model.backoff import Backoff
from tfyard.model.names import OPERATOR_NAME, REPLICA_INDEX
from tfyard.views.metadata import ObjectMeta

LOST = ChangedObject(
    ATTEMPT_LOST, "pod train-worker-0 lost its annotation", "create", "Pod", restarts_only=True
)
OTHER = ChangedObject(LABELS_MISSING, "the labels of pod train-worker-0 were changed", "create", "Pod")
LABELS = {OPERATOR_NAME: "tfjob-controller", REPLICA_INDEX: "0", "team": "a"}
SERVICE = Create({"kind": "Service", "metadata": {"name": "train"}})
DELETE = Delete("Pod", "train-worker-0")
SELECTOR = Amend("Service", "train", {"spec": {"selector": {"a": "b"}}})


def pod(attempt: int, name: str = "train-worker-0") -> Create:
    annotations = {"tfyard.dev/attempt": str(attempt)}
    return Create({"kind": "Pod", "metadata": {"name": name, "annotations": annotations, "labels": LABELS}})


class Undone(UndoneWrites):
    """With a clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.made = count()
        super().__init__(Backoff(first=10.0, longest=100.0), lambda: self.now)

    def due(self, uid: str, *actions: Action) -> list[Action]:
        return [action for action in actions if self.why_wait(uid, action) is None]

    def do(self, uid: str, *actions: Action) -> None:
        """Each create makes a new object."""
        self.review(uid, [(action, f"made-{next(self.made)}") for action in actions], [])


def test_only_a_pod_that_is_not_the_first_attempt_is_a_restart() -> None:
    assert is_restart(pod(1))
    assert not any(map(is_restart, (pod(0), SERVICE, DELETE)))


def meta(attempt: int | None = None, **labels: Any) -> ObjectMeta:
    kept = {key: value for key, value in {**LABELS, **labels}.items() if value is not None}
    return ObjectMeta("x", labels=kept, annotations={"tfyard.dev/attempt": str(attempt)} if attempt else {})


def test_a_restarted_pod_must_come_back_as_its_attempt() -> None:
    assert check(pod(2), meta(2)) is None
    lost = check(pod(2), meta())
    assert lost is not None
    assert lost.message.startswith(
        "pod train-worker-0 lost its annotation tfyard.dev/attempt when it was created"
    )
    assert check(pod(0), meta()) is None, "without it, a pod reads as attempt 0"
    assert check(SERVICE, ObjectMeta("x")) is None


def test_an_object_must_come_back_with_the_labels_by_which_it_is_found() -> None:
    changed = check(pod(0), meta(**{OPERATOR_NAME: None, REPLICA_INDEX: "7", "team": "b"}))
    assert changed is not None
    assert changed.reason == "LabelsMissing"
    assert changed.message.startswith(
        "an admission policy or webhook changed the labels of pod train-worker-0:"
        " training.kubeflow.org/operator-name=tfjob-controller was removed,"
        " training.kubeflow.org/replica-index=0 became 7; it must keep them"
    )
    assert check(pod(0), meta(team="b", more="c")) is None, "other labels are free"


def test_restarted_pods_wait_and_nothing_else_does() -> None:
    undone, actions = Undone(), [pod(1), pod(0), SERVICE, DELETE]
    assert undone.due("u-1", *actions) == actions
    undone.review("u-1", [], [LOST])
    assert undone.due("u-1", *actions) == actions[1:]
    assert undone.due("u-2", *actions) == actions, "another job"
    undone.do("u-1", pod(0, "train-worker-1"))
    assert undone.waits("u-1") == [LOST], "a first attempt proves nothing"


def test_all_objects_of_a_kind_wait_whose_labels_were_changed() -> None:
    undone, actions = Undone(), [pod(1), pod(0, "train-ps-0"), SERVICE, DELETE]
    undone.review("u-1", [(SERVICE, "made")], [OTHER])
    assert undone.due("u-1", *actions) == [SERVICE, DELETE]


def test_the_wait_is_over_in_time_and_forgotten_when_an_attempt_is_kept() -> None:
    undone = Undone()
    undone.review("u-1", [], [LOST])
    undone.now += 10
    assert undone.waits("u-1") == []
    undone.review("u-1", [], [LOST])
    undone.now += 19
    assert undone.waits("u-1") == [LOST], "the next wait is longer"
    undone.now += 1
    undone.do("u-1", pod(3))
    undone.review("u-1", [], [LOST])
    undone.now += 10
    assert undone.waits("u-1") == [], "it begins anew"


def test_the_same_write_may_be_repeated_once_and_then_waits_ever_longer() -> None:
    for write, words in (
        (pod(0), "pod train-worker-0 is deleted"),
        (SELECTOR, "service train is changed back"),
    ):
        undone = Undone()
        for wait in (0.0, 0.0, 10.0, 20.0, 40.0):
            if wait:
                undone.now += wait - 1
                obstacle = undone.why_wait("u-1", write)
                assert obstacle is not None
                assert obstacle.reason == UNDONE
                assert obstacle.message.startswith(words)
                undone.now += 1
            assert undone.due("u-1", write) == [write]
            undone.do("u-1", write)
        assert undone.due("u-2", write) == [write], "another job"


def test_what_is_postponed_waits_as_long_as_the_server_asks_and_other_writes_do_not() -> None:
    undone, busy = Undone(), build_error(429, b"{}", "25")
    assert isinstance(busy, TooManyRequests)
    delete = postponed(DELETE, busy)
    assert delete is not None
    assert delete.message.startswith("cannot delete pod train-worker-0: ")
    for _ in range(2):
        undone.review("u-1", [], [delete])
        assert undone.due("u-1", pod(1), DELETE) == [pod(1)]
        assert undone.due_in("u-1") == 25
        undone.now += 24
        assert undone.due("u-1", DELETE) == []
        undone.now += 1
        assert undone.due("u-1", DELETE) == [DELETE]
        assert undone.due_in("u-1") is None
    undone.do("u-1", DELETE)
    assert len(undone) == 0, "nothing is kept of it when it is done"
    assert postponed(DELETE, Unreachable("no answer", sent=False)) is None


def test_another_attempt_another_patch_and_another_name_are_other_writes() -> None:
    undone, other = Undone(), Amend("Service", "train", {"spec": {"selector": {"a": "c"}}})
    for _ in range(2):
        undone.do("u-1", pod(0), SELECTOR)
    assert undone.due("u-1", pod(0), SELECTOR) == []
    free = [pod(1), pod(0, "train-worker-1"), other, DELETE]
    assert undone.due("u-1", *free) == free


def test_a_create_that_meets_its_own_object_is_no_repetition() -> None:
    undone = Undone()
    for _ in range(5):
        undone.review("u-1", [(pod(0), "made")], [])
    assert undone.due("u-1", pod(0)) == [pod(0)]


def test_writes_that_lasted_are_forgotten() -> None:
    undone = Undone()
    undone.do("u-1", pod(0))
    undone.now += 150
    undone.do("u-1", pod(0, "train-worker-1"))
    undone.now += 51
    undone.review("u-1", [], [])
    undone.do("u-1", pod(0), pod(0, "train-worker-1"))
    assert undone.due("u-1", pod(0)) == [pod(0)]
    assert undone.due("u-1", pod(0, "train-worker-1")) == []
    undone.now += 1000
    undone.review("u-1", [], [])
    assert len(undone) == 0
