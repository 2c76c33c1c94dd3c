"""A pod that was asked to stop before it ended has not finished, one that ended first has, in every history.

Each story is the versions of one pod as a real apiserver stores them. Between any two versions the leader may
look, be restarted (so that it knows no more than a list says), be followed by a standby, or lose its watch for a
while. All such histories are played.
"""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from tests.planner.builders import NOW, created, job, workers
from tfyard.backends.kubernetes.cache import Cache
from tfyard.backends.kubernetes.views import StoredJob
from tfyard.kube.requests import TFJOBS
from tfyard.model import Decision, Observed, Status
from tfyard.model.names import REPLICA_INDEX, REPLICA_TYPE
from tfyard.planner import Site, decide
from tfyard.views.metadata import ObjectMeta, OwnerReference
from tfyard.views.pods import (
    Container,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodSpec,
    PodStatus,
    PodView,
    State,
)

JOB = job(workers(1, "OnFailure"), backoff_limit=0)
LABELS = {REPLICA_TYPE: "worker", REPLICA_INDEX: "0"}
ASKED_AT = NOW
GRACE = 30
DISRUPTION = PodCondition("DisruptionTarget", "True", "EvictionByEvictionAPI")


class Story:
    """The versions of a pod, one after the other; `tracked`: its kubelet reports the generation that it knows."""

    def __init__(self, *, tracked: bool) -> None:
        self.tracked = tracked
        self.meta: dict[str, Any] = {"generation": 1}
        self.known = 1
        self.status: dict[str, Any] = {"phase": "Running"}
        self.state = State(running=ContainerStateRunning())
        self.versions: list[PodView] = []
        self.proofs: set[int] = set()
        """Versions that prove by themselves that the program ended first."""
        self.store()

    def store(self, *, proof: bool = False) -> "Story":
        version = len(self.versions)
        meta = ObjectMeta(
            "mnist-worker-0",
            "lab",
            uid="pod",
            resource_version=str(10 + version),
            labels=LABELS,
            owner_references=(OwnerReference(JOB.uid, True, JOB.api_version, JOB.kind, JOB.name),),
            **self.meta,
        )
        trainer = ContainerStatus("tensorflow", state=self.state)
        status = PodStatus(
            observed_generation=self.known if self.tracked else 0,
            container_statuses=(trainer,),
            **self.status,
        )
        spec = PodSpec("node", "OnFailure", containers=(Container("tensorflow"),))
        self.versions.append(PodView(meta, spec, status))
        if proof:
            self.proofs.add(version)
        return self

    def ask(self, grace: int, at: float = 0.0) -> None:
        self.meta |= {
            "generation": 2,
            "deletion_timestamp": ASKED_AT + timedelta(seconds=at + grace),
            "deletion_grace_period_seconds": grace,
        }

    def end(self, at: float) -> None:
        self.status["phase"] = "Succeeded"
        self.state = State(
            terminated=ContainerStateTerminated(0, "Completed", finished_at=ASKED_AT + timedelta(seconds=at))
        )


def asked_first(*, tracked: bool, evicted: bool, acknowledged: bool, late: float) -> Story:
    story = Story(tracked=tracked)
    if evicted:
        story.status["conditions"] = (DISRUPTION,)
        story.store()
    story.ask(GRACE)
    story.store()
    story.known = 2
    if acknowledged:
        story.store()
    story.end(late)
    story.store()
    story.ask(0, late)  # the kubelet is done: the time of its request takes the place of the first
    return story.store()


def ended_first(*, tracked: bool, held: bool, late: float) -> Story:
    """`held`: a finalizer keeps it for a while, and the kubelet has time to learn of the deletion."""
    story = Story(tracked=tracked)
    story.end(-late)
    story.store(proof=True)
    story.ask(0)
    story.store(proof=tracked)
    if held:
        story.known = 2
        story.store()
    return story


ASKED = {
    f"{'evicted' if evicted else 'deleted'}, ends after {late} s, {'tracked' if tracked else 'untracked'}"
    f"{', acknowledged' if acknowledged else ''}": asked_first(
        tracked=tracked, evicted=evicted, acknowledged=acknowledged, late=late
    )
    for tracked, evicted, acknowledged, late in [
        (True, False, False, 0),
        (True, False, True, 1),
        (True, True, False, 1),
        (False, False, False, 0),
        (False, True, False, 1),
    ]
}
ENDED = {
    f"{'tracked' if tracked else 'untracked'}, {late} s before{', held' if held else ''}": ended_first(
        tracked=tracked, held=held, late=late
    )
    for tracked, held, late in itertools.product([True, False], [True, False], [0, 5])
}


class Observer:
    """The cache of one operator: filled by its watch, or at first by a list."""

    def __init__(self, story: Story, now: int | None) -> None:
        self.story, self.cache = story, Cache()
        meta = ObjectMeta("mnist", "lab", uid=JOB.uid, resource_version="1")
        self.cache.put_job(TFJOBS, StoredJob(metadata=meta, api_version=JOB.api_version, kind=JOB.kind))
        self.seen: set[int] = set()
        self.list(now)

    def list(self, now: int | None) -> None:
        """Fills the cache by a list. `now`: the version of the pod; None if it is gone."""
        self.cache.pods.replace([] if now is None else [self.story.versions[now]])
        if now is not None:
            self.seen.add(now)

    def watch(self, now: int | None) -> None:
        if now is None:
            self.cache.pods.drop(self.story.versions[-1])
        else:
            self.cache.pods.put(self.story.versions[now])
            self.seen.add(now)

    @property
    def pods(self) -> Any:
        return self.cache.pods.of(JOB.as_owner)

    @property
    def has_proof(self) -> bool:
        return bool(self.seen & self.story.proofs)


class History:
    """`verdict` is what must come out, by the first look at the ended pod: True if it was proved that it ended by
    itself."""

    def __init__(self, story: Story) -> None:
        self.story, self.status = story, Status()
        self.now: int | None = 0
        self.leader, self.standby = Observer(story, 0), Observer(story, 0)
        self.is_blind = False
        self.verdict: bool | None = None

    def play(self, moves: tuple[str, ...]) -> None:
        for number, move in enumerate(moves):
            self.move(move)
            following = number + 1
            self.now = following if following < len(self.story.versions) else None
            self.standby.watch(self.now)
            if move != "blind":
                self.leader.list(self.now) if self.is_blind else self.leader.watch(self.now)
            self.is_blind = move == "blind"
        if self.is_blind:
            self.leader.list(self.now)

    def move(self, move: str) -> None:
        if move == "restart":
            self.leader = Observer(self.story, self.now)
        elif move == "failover":
            self.leader, self.standby = self.standby, Observer(self.story, self.now)
        if move in ("restart", "failover"):
            self.is_blind = False
        if move in ("restart", "failover", "look"):
            self.look()

    def look(self) -> Decision:
        if self.verdict is None and any(pod.end for pod in self.leader.pods):
            self.verdict = self.leader.has_proof
        gone = self.leader.cache.pods.gone(JOB.as_owner)
        decision = decide(JOB, Observed(status=self.status, pods=self.leader.pods), Site(), NOW)
        self.status = decision.status
        self.leader.cache.pods.prune(JOB.as_owner, gone)
        return decision


WATCHED = ("", "look", "failover")
MOVES = (*WATCHED, "restart", "blind")


def histories(story: Story, possible: tuple[str, ...] = MOVES) -> Iterator[tuple[History, tuple[str, ...]]]:
    for moves in itertools.product(possible, repeat=len(story.versions)):
        history = History(story)
        history.play(moves)
        yield history, moves


@pytest.mark.parametrize("story", ASKED.values(), ids=ASKED.keys())
def test_a_pod_that_was_asked_first_is_never_finished_and_replaced_when_it_is_gone(story: Story) -> None:
    for history, moves in histories(story):
        made = created(history.look()) or created(
            history.look()
        )  # the reason of its disruption is written first
        assert made == ["mnist-worker-0"], moves
        assert not history.status.is_finished, moves
        assert not history.status.tasks.get("Worker") or not history.status.tasks["Worker"].finished, moves


@pytest.mark.parametrize("tracked", [True, False])
def test_a_pod_seen_running_when_it_was_asked_to_stop_does_not_depend_on_its_nodes_clock(
    tracked: bool,
) -> None:
    behind = asked_first(tracked=tracked, evicted=False, acknowledged=False, late=-5)
    for history, moves in histories(behind, WATCHED):
        history.look()
        assert created(history.look()) == ["mnist-worker-0"], moves
        assert not history.status.is_finished, moves


@pytest.mark.parametrize("story", ENDED.values(), ids=ENDED.keys())
def test_a_pod_that_ended_first_is_finished_if_anything_proves_it(story: Story) -> None:
    for history, moves in histories(story):
        history.look()
        history.look()
        assert history.status.has("Succeeded") == bool(history.verdict), moves
    watched = History(story)
    watched.play(("",) * len(story.versions))
    watched.look()
    assert watched.status.has("Succeeded"), "whoever watched it all knows"
