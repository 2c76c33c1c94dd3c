"""Kueue's own controller on a whole cluster: jobs queue, are admitted and preempted, stopped and resumed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cluster import guests
from tests.cluster.clusters import Cluster, until
from tests.dashboard.served import served
from tests.dashboard.test_entering import Client

pytestmark = [pytest.mark.cluster, pytest.mark.long]
GROUP = "kueue.x-k8s.io"
KUEUE = f"{GROUP}/v1beta1"
QUEUES = "workloads,localqueues,clusterqueues,resourceflavors,workloadpriorityclasses"


def _kueues(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, **fields}


QUOTA = {"name": "cpu", "nominalQuota": "200m"}
OBJECTS = (
    _kueues("ResourceFlavor", "default"),
    _kueues("WorkloadPriorityClass", "urgent", value=1000, description="before others"),
    _kueues(
        "ClusterQueue",
        "all",
        spec={
            "namespaceSelector": {},
            "preemption": {"withinClusterQueue": "LowerPriority"},
            "resourceGroups": [
                {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": [QUOTA]}]}
            ],
        },
    ),
    _kueues("LocalQueue", "team", spec={"clusterQueue": "all"}),
)


class Team:
    """A namespace whose queue has room for one job of two workers."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self._folder = cluster, folder
        self.sign = f"/tmp/{uuid4().hex}"
        """Files whose names begin so tell programs what to do: of this test alone, where pods share their /tmp."""

    def tfyard(self, *words: str) -> str:
        done = self.cluster.tfyard(*words, "-n", "queued")
        assert done.code == 0, done.err
        return done.out + done.err

    def submit(self, name: str, *labels: str, words: str = "") -> None:
        """It runs until `finish`; a pod whose program finds its sign `saved` ends as after a save."""
        file = self._folder / f"{name}.yaml"
        saved = f"{self.sign}-saved-$HOSTNAME"
        run = f"until [ -e {self.sign}-end-{name} ]; do [ -e {saved} ] && rm {saved} && exit 42; sleep 0.2; done"
        own = "".join(f"  {label}\n" for label in labels)
        text = f"name: {name}\nimage: any:1\nrun: {run}\nworker: 2\ncpu: 100m\nqueue: team\n{words}"
        file.write_text(text + (f"labels:\n{own}" if own else ""))
        self.tfyard("submit", str(file))

    def why(self, name: str) -> str:
        """What Kueue says comes a moment after the job."""
        return self.cluster.tfyard("why", name, "-n", "queued").out

    def state(self, name: str) -> str:
        return str((self._job(name).get("status") or {}).get("phase"))

    def pods(self, name: str) -> list[str]:
        found = self.cluster.get("pods", "-n", "queued", "-l", f"training.kubeflow.org/job-name={name}")
        return [each["metadata"]["name"] for each in found["items"] if each["status"]["phase"] == "Running"]

    def uids(self, name: str) -> dict[str, str]:
        """Pods of tasks that run -> their uids."""
        running, found = self.pods(name), self.cluster.get("pods", "-n", "queued")["items"]
        metas = [each["metadata"] for each in found]
        return {meta["name"]: meta["uid"] for meta in metas if meta["name"] in running}

    def evict(self, pod: str) -> None:
        """As `kubectl drain` does it, but the node stays."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
        path = f"/api/v1/namespaces/queued/pods/{pod}/eviction"
        self.cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))

    def until(self, **states: str) -> None:
        until(lambda: {name: self.state(name) for name in states} == states, 120)

    def finish(self, name: str) -> None:
        """Where pods share their /tmp, all end when the first is told to. A job runs before all its pods do."""
        until(lambda: len(self.pods(name)) == 2, 60)
        for pod in self.pods(name):
            try:
                self.tell(pod, f"end-{name}")
            except AssertionError:
                if pod in self.pods(name):
                    raise
        self.until(**{name: "Succeeded"})

    def tell(self, pod: str, word: str) -> None:
        self.cluster.kubectl("exec", "-n", "queued", pod, "--", "touch", f"{self.sign}-{word}")

    def restarts(self, name: str) -> Any:
        return self._job(name)["status"].get("restarts", 0)

    def _job(self, name: str) -> Any:
        return self.cluster.get("tfjob", name, "-n", "queued")


@pytest.fixture(scope="module")
def kueue(_cluster: Cluster) -> Iterator[Cluster]:
    _cluster.kubectl("create", "namespace", "queued")
    with guests.installed(_cluster, "kueue"):
        until(lambda: _is_applied(_cluster))
        yield _cluster
        _cluster.kubectl("delete", "-n", "queued", "tfjobs", "--all")
        for kind in QUEUES.split(","):  # while Kueue runs, which has finalizers on them
            _cluster.kubectl("delete", f"{kind}.{GROUP}", "--all", "-n", "queued")
    _cluster.kubectl("delete", "namespace", "queued")


def _is_applied(cluster: Cluster) -> bool:
    """Its webhooks answer a moment after its pod is ready."""
    try:
        cluster.apply(*OBJECTS, namespace="queued")
    except AssertionError as refusal:
        if "failed calling webhook" not in str(refusal):
            raise
        return False
    return True


@pytest.fixture
def team(kueue: Cluster, tmp_path: Path) -> Iterator[Team]:
    team = Team(kueue, tmp_path)
    yield team
    kueue.kubectl("delete", "-n", "queued", "tfjobs", "--all")
    until(lambda: not kueue.get("pods", "-n", "queued")["items"])
    for file in Path("/").glob(f"{team.sign[1:]}-*"):
        file.unlink()


def test_a_job_without_room_queues_and_starts_when_another_has_ended(team: Team) -> None:
    team.submit("first")
    team.until(first="Running")
    team.submit("second")
    team.until(second="Suspended")
    until(lambda: "it waits in queue team at position 1 of 1: " in team.why("second"), 60)
    assert "insufficient unused quota for cpu in flavor default" in team.why("second")
    assert team.pods("second") == []
    team.submit("third")
    until(lambda: "it waits in queue team at position 2 of 2 behind second: " in team.why("third"), 60)
    team.finish("first")
    team.until(second="Running")
    team.finish("second")
    team.until(third="Running")
    team.finish("third")


def test_the_page_says_at_which_position_a_job_waits_until_it_runs(team: Team, tmp_path: Path) -> None:
    team.submit("first")
    team.until(first="Running")
    team.submit("second")
    team.submit("third")
    team.until(second="Suspended", third="Suspended")
    with served(tmp_path, "-n", "queued", KUBECONFIG=str(team.cluster.kubeconfig)) as page:
        client = Client(page)
        until(lambda: waits(client, "second") == "in team, position 1 of 2", 120)
        until(lambda: waits(client, "third") == "in team, position 2 of 2 behind second", 120)
        listed = client.ask("GET", f"{page.base}/?sort=queue").text
        assert listed.index("position 1 of 2") < listed.index("position 2 of 2"), "in the order of the queue"
        for text in (
            "<dt>Queue</dt><dd>team <small>position 2 of 2 behind second</small>",
            "it waits in queue team at position 2 of 2 behind second: ",
        ):
            until(lambda text=text: text in client.ask("GET", f"{page.base}/job/queued/third/").text, 60)
        team.finish("first")
        until(lambda: waits(client, "third") == "in team, position 1 of 1", 120)
        until(lambda: waits(client, "second") == "", 120)
        for name in ("second", "third"):
            team.until(**{name: "Running"})
            team.finish(name)


def waits(client: Client, name: str) -> str:
    """Where a job waits, as the list on the page has it; asking is looking at it."""
    answer = client.ask("GET", f"{client.page.base}/jobs.json")
    known = {each["name"]: each for each in json.loads(answer.text)["jobs"]}
    job = known.get(name, {})  # the page has just begun to watch
    return f"in {job['queue']}, {job.get('position', '')}" if "queue" in job else ""


def test_a_job_that_is_stopped_gives_its_quota_back_and_queues_again_when_it_is_resumed(team: Team) -> None:
    team.submit("first")
    team.until(first="Running")
    team.submit("second")
    told = team.tfyard("stop", "first", "--wait", "--yes")
    assert "Kueue suspends it, and gives its quota in the queue team back" in told
    team.until(first="Suspended", second="Running")
    assert team.pods("first") == []
    told = team.tfyard("resume", "first", "--yes")
    assert "it starts when Kueue admits it, from the end of the queue team" in told
    team.finish("second")
    team.until(first="Running")
    assert team.restarts("first") == 0
    team.finish("first")


def test_a_job_that_is_preempted_by_priority_goes_on_later_and_loses_no_retry(team: Team) -> None:
    team.submit("patient")
    team.until(patient="Running")
    team.submit("hasty", f"{GROUP}/priority-class: urgent")
    team.until(hasty="Running", patient="Suspended")
    until(lambda: "it waits in queue team at position 1 of 1: " in team.why("patient"), 60)
    team.finish("hasty")
    team.until(patient="Running")
    assert team.restarts("patient") == 0
    team.finish("patient")


@pytest.mark.parametrize("words", ["", "together: true\n"], ids=["a peer saves", "together"])
def test_a_queued_job_that_loses_a_task_starts_again_as_a_whole_within_its_quota(
    team: Team, words: str
) -> None:
    team.submit("first", words=f"retries: 0\n{words}")
    before = until(lambda: len(found := team.uids("first")) == 2 and found, 120)
    team.submit("second")
    team.evict("first-worker-1")
    if not words:
        team.tell("first-worker-0", "saved-first-worker-0")

    def all_new() -> bool:
        now = team.uids("first")
        return len(now) == 2 and not {*now.values()} & {*before.values()}

    until(all_new, 120)
    assert (team.state("second"), team.pods("second")) == ("Suspended", []), "the quota is not given away"
    assert team.restarts("first") == 0
    team.finish("first")
    team.until(second="Running")
    team.finish("second")
