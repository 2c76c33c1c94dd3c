"""A small model of a cluster: it stores objects, moves pods through their phases, and counts restarts itself.

Status is stored as JSON, as in a real cluster, so that a decision can only remember what survives that.
"""

import json
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from tfyard.model import (
    Action,
    Amend,
    Create,
    Decision,
    DeleteJob,
    Group,
    Job,
    Manifest,
    Observed,
    Pod,
    Status,
)
from tfyard.model.names import ATTEMPT, PLUGINS_GROUP, POD_GROUP, STOPPED, VOLCANO_GROUP
from tfyard.planner import Site, decide
from tfyard.views.tfjob_status import dump_status, load_status

from .builders import HERE, NOW, task

GRACE = timedelta(seconds=30)


class World:
    def __init__(self, job: Job, site: Site = HERE) -> None:
        self.job = job
        self.site = site
        self.now: datetime = NOW
        self.stored: str = "{}"
        self.pods: dict[str, Pod] = {}
        self.children: set[tuple[str, str]] = set()
        self.group: Group | None = None
        self.is_deleted = False
        self.made = 0

    # What the planner does.

    @property
    def status(self) -> Status:
        return load_status({"status": json.loads(self.stored)})

    def observe(self) -> Observed:
        return Observed(
            status=self.status,
            pods=tuple(self.pods.values()),
            children=frozenset(self.children),
            group=self.group,
        )

    def decide(self) -> Decision:
        return decide(self.job, self.observe(), self.site, self.now)

    def step(self) -> Decision:
        decision = self.decide()
        self.report(decision)
        self.apply(decision.actions)
        return decision

    def report(self, decision: Decision) -> None:
        self.stored = json.dumps(dump_status(decision.status))

    def apply(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            if isinstance(action, DeleteJob):
                self.is_deleted = True
            elif isinstance(action, Create):
                self._create(action)
            elif isinstance(action, Amend) and action.kind == "Pod":
                self._end_in_place(action)
            elif isinstance(action, Amend):
                assert self.group is not None
                self.group = replace(self.group, spec={**self.group.spec, **action.patch["spec"]})
            elif action.kind == "Pod":
                self._delete(action.name, action.uid, force=action.force)
            elif action.kind == POD_GROUP and self.group is not None:
                self.group = replace(self.group, deleting=True)
            else:
                self.children.discard((action.kind, action.name))

    def _create(self, action: Create) -> None:
        if action.kind != "Pod":
            assert (action.kind, action.name) not in self.children
            self.children.add((action.kind, action.name))
            if action.kind == POD_GROUP:
                self.group = Group(spec=action.manifest["spec"])
            return
        assert action.name not in self.pods, "a name is free before it is given again"
        self.made += 1
        attempt = int(action.manifest["metadata"]["annotations"][ATTEMPT])
        name, uid = action.name.removeprefix(f"{self.job.name}-"), f"uid-{self.made}"
        joins = _joins(action.manifest)
        self.pods[action.name] = Pod(
            name=action.name, uid=uid, task=task(name), attempt=attempt, member=joins, waits=joins
        )

    def _delete(self, name: str, uid: str, *, force: bool = False) -> None:
        pod = self.pods.get(name)
        if pod is None or pod.uid != uid:
            return
        if force or pod.phase != "Running":
            del self.pods[name]
        elif pod.deleting is None:
            self.change(name, deleting=self.now + GRACE, asked_to_stop=not pod.end)

    def _end_in_place(self, action: Amend) -> None:
        over = {"phase": "Failed", "reason": "DeadlineExceeded", "lingers_since": None, "restart_due": False}
        is_stopped = STOPPED in action.patch["metadata"].get("annotations", {})
        self.change(action.name, **over, told_to_end=True, asked_to_stop=is_stopped)

    # What happens to it.

    def change(self, name: str, **fields: Any) -> None:
        self.pods[name] = replace(self.pods[name], **fields)

    def start(self) -> None:
        """Kubelets do what they are asked: pending pods run, and those that should go are gone. They also notice
        which pods have ended."""
        for name, pod in list(self.pods.items()):
            if pod.deleting is not None:
                del self.pods[name]
            elif pod.phase == "Running" and pod.program and not pod.lingers_since:
                self.change(name, phase=pod.program, program="")
        self._schedule()
        self._answer()

    def _schedule(self) -> None:
        """Members of a group start when enough of them are there; Volcano alone counts those that are done."""
        alive = ("Pending", "Running", "Succeeded") if self._is_volcano() else ("Pending", "Running")
        there = sum(pod.member and pod.phase in alive for pod in self.pods.values())
        has_enough = self.group is not None and there >= _members(self.group.spec)
        for name, pod in self.pods.items():
            if pod.phase == "Pending" and (not pod.member or has_enough):
                self.change(name, phase="Running", ready=True, waits=False, running_since=self.now)

    def _answer(self) -> None:
        """Volcano finds room; a group that should go does so when nobody uses it any more."""
        if self.group is None:
            return
        if not self.group.deleting:
            self.group = replace(self.group, phase="Inqueue" if self._is_volcano() else "")
        elif not any(pod.phase in ("Pending", "Running") for pod in self.pods.values()):
            self.group = None
            self.children.discard((POD_GROUP, self.job.name))

    def _is_volcano(self) -> bool:
        return self.site.gang is not None and self.site.gang.by == "volcano"

    def delete(self, name: str) -> None:
        """Somebody deletes a pod: kubectl, a drain, a preemption."""
        self._delete(name, self.pods[name].uid)

    def settle(self) -> Decision:
        """Kubelets and planner take turns until both have nothing to do, and no task waits."""
        for _ in range(12):
            self.start()
            before = self.stored
            decision = self.step()
            if not decision.actions and self.stored == before and not self._wait():
                return decision
        raise AssertionError(f"never comes to rest: {decision.actions}")

    def _wait(self) -> bool:
        """Whether time had to pass until a task may be tried again."""
        status = self.status
        waits = [each.until for role in status.tasks.values() for each in role.backoff.values()]
        began, self.now = self.now, max([self.now, *waits])
        return self.now > began and not status.is_finished


def _joins(manifest: Manifest) -> bool:
    marks = {**manifest["metadata"]["labels"], **manifest["metadata"]["annotations"]}
    return "schedulingGroup" in manifest["spec"] or PLUGINS_GROUP in marks or VOLCANO_GROUP in marks


def _members(spec: Manifest) -> int:
    return int(spec["minMember"] if "minMember" in spec else spec["schedulingPolicy"]["gang"]["minCount"])
