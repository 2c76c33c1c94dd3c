"""Pods in the box behave as on a real node: the API sees phases, codes, counts, conditions and farewells."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from tests.kubelet.pods import Pods
from tfyard.kube import Client, Resource, requests
from tfyard.testing import ControlPlane, Pod, Script, ScriptedKubelet, Sidecar, builders

pytestmark = pytest.mark.cluster

AT_ONCE = Script(run_for=0.0)
JOBS = Resource("batch", "v1", "jobs")


class Box(Pods):
    """One namespace with a kubelet in it."""

    def __init__(self, client: Client, namespace: str, kubelet: ScriptedKubelet) -> None:
        super().__init__(client, namespace)
        self.kubelet = kubelet


@asynccontextmanager
async def box(
    plane: ControlPlane, namespace: str, script: Script | Callable[[Pod], Script], nodes: int = 1
) -> AsyncIterator[Box]:
    async with plane.client() as client, ScriptedKubelet(client, script, namespace, nodes) as kubelet:
        yield Box(client, namespace, kubelet)


def main(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]


def conditions(pod: Any) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in pod["status"].get("conditions", [])}


def main_status(pod: Any) -> Any:
    return pod["status"]["containerStatuses"][0]


async def test_a_pod_runs_ready_on_a_node_until_it_is_told_to_end(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script()) as cluster:
        await cluster.create_pod(builders.pod("chief-0"))
        alive = await cluster.until_phase("chief-0", "Running")
        await cluster.kubelet.finish("chief-0", 3)
        dead = await cluster.until_phase("chief-0", "Failed")
    assert alive["spec"]["nodeName"] == f"{namespace}-node-0"
    assert alive["status"]["podIP"].startswith("10.1.")
    assert conditions(alive)["Ready"] == conditions(alive)["PodScheduled"] == "True"
    assert main_status(alive)["state"]["running"]["startedAt"]
    assert conditions(dead)["Ready"] == "False"
    assert main_status(dead)["state"]["terminated"]["exitCode"] == 3
    assert main_status(dead)["state"]["terminated"]["reason"] == "Error"


async def test_the_script_may_depend_on_the_pod(control_plane: ControlPlane, namespace: str) -> None:
    def script(pod: Pod) -> Script:
        return AT_ONCE if pod.metadata.labels["role"] == "ps" else Script(run_for=0.0, exit_codes=(1,))

    async with box(control_plane, namespace, script) as cluster:
        await cluster.create_pod(builders.pod("ps-0", {"role": "ps"}))
        await cluster.create_pod(builders.pod("worker-0", {"role": "worker"}))
        await cluster.until_phase("ps-0", "Succeeded")
        await cluster.until_phase("worker-0", "Failed")


async def test_on_failure_restarts_in_place_and_counts(control_plane: ControlPlane, namespace: str) -> None:
    script = Script(run_for=0.0, exit_codes=(1, 137, 0), exit_reason="OOMKilled")
    async with box(control_plane, namespace, script) as cluster:
        await cluster.create_pod(builders.pod("worker-0", restart="OnFailure"))
        pod = await cluster.until_phase("worker-0", "Succeeded")
    assert main_status(pod)["restartCount"] == 2
    assert main_status(pod)["lastState"]["terminated"] | {"startedAt": "", "finishedAt": ""} == {
        "exitCode": 137,
        "reason": "OOMKilled",
        "startedAt": "",
        "finishedAt": "",
    }


async def test_a_crash_loop_waits_between_its_runs(control_plane: ControlPlane, namespace: str) -> None:
    async with box(
        control_plane, namespace, Script(run_for=0.0, exit_codes=(1,), restart_after=60)
    ) as cluster:
        await cluster.create_pod(builders.pod("worker-0", restart="Always"))
        pod = await cluster.until("worker-0", lambda pod: "CrashLoopBackOff" in str(pod["status"]))
    assert pod["status"]["phase"] == "Running"
    assert main_status(pod)["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert main_status(pod)["restartCount"] == 1


async def test_a_container_may_have_ended_for_a_while_before_its_pod_has(
    control_plane: ControlPlane, namespace: str
) -> None:
    script = Script(run_for=0.0, exit_codes=(1, 0), phase_lag=0.3)
    async with box(control_plane, namespace, script) as cluster:
        made = await cluster.create_pod(builders.pod("worker-0", restart="OnFailure"))
        seen = await cluster.versions(made, lambda pod: pod["status"]["phase"] == "Succeeded")
    ends = [
        (pod["status"]["phase"], main_status(pod)["restartCount"], state["terminated"]["exitCode"])
        for pod in seen
        if "terminated" in (state := (pod["status"].get("containerStatuses") or [{"state": {}}])[0]["state"])
    ]
    assert ends == [("Running", 0, 1), ("Running", 1, 0), ("Succeeded", 1, 0)]


async def test_a_crash_loop_that_a_deadline_ends_tells_of_its_last_run_as_a_kubelet_does(
    control_plane: ControlPlane, namespace: str
) -> None:
    script = Script(run_for=0.0, exit_codes=(3,), restart_after=60)
    async with box(control_plane, namespace, script) as cluster:
        await cluster.create_pod(builders.pod("worker-0", restart="OnFailure"))
        await cluster.until("worker-0", lambda pod: "CrashLoopBackOff" in str(pod["status"]))
        deadline = {"spec": {"activeDeadlineSeconds": 1}}
        await cluster.client.send(requests.patch(requests.PODS.path(namespace, "worker-0"), deadline))
        pod = await cluster.until_phase("worker-0", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    lost, last = main_status(pod)["state"]["terminated"], main_status(pod)["lastState"]["terminated"]
    assert (lost["exitCode"], lost["reason"]) == (137, "ContainerStatusUnknown")
    assert (last["exitCode"], last["reason"], main_status(pod)["restartCount"]) == (3, "Error", 1)


async def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script(waiting="ImagePullBackOff")) as cluster:
        await cluster.create_pod(builders.pod("worker-0"))
        pod = await cluster.until("worker-0", lambda pod: "containerStatuses" in pod["status"])
    assert pod["status"]["phase"] == "Pending"
    assert main_status(pod)["state"]["waiting"]["reason"] == "ImagePullBackOff"


async def test_readiness_may_come_later(control_plane: ControlPlane, namespace: str) -> None:
    async with box(control_plane, namespace, Script(ready_after=0.3)) as cluster:
        made = await cluster.create_pod(builders.pod("ps-0"))
        *early, late = await cluster.versions(made, lambda pod: conditions(pod).get("Ready") == "True")
    running = [pod for pod in early if pod["status"]["phase"] == "Running"]
    assert [main_status(pod)["ready"] for pod in running] == [False]
    assert main_status(late)["ready"]
    reasons = {each["type"]: each.get("reason") for each in late["status"]["conditions"]}
    assert reasons["Ready"] is reasons["ContainersReady"] is None, "ContainersNotReady holds no more"


async def test_init_containers_are_done_first_or_fail_the_pod(
    control_plane: ControlPlane, namespace: str
) -> None:
    def script(pod: Pod) -> Script:
        return Script(run_for=0.0, init_exit_code=0 if pod.metadata.name == "good" else 2)

    init = [{"name": "fetch", "image": "registry.example/git:1"}]
    async with box(control_plane, namespace, script) as cluster:
        for name in ("good", "bad"):
            await cluster.create_pod(builders.pod(name, initContainers=init))
        good = await cluster.until_phase("good", "Succeeded")
        bad = await cluster.until_phase("bad", "Failed")
    assert good["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    assert bad["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 2
    assert main_status(bad)["state"]["waiting"]["reason"] == "PodInitializing"


async def test_a_deleted_pod_ends_gracefully_with_its_exit_code_on_record(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script(stop_after=0.5)) as cluster:
        made = await cluster.create_pod(builders.pod("worker-0"))
        await cluster.until_phase("worker-0", "Running")
        await cluster.delete("worker-0")
        *before, last = await cluster.versions(made)
    stopping = next(pod for pod in before if "deletionTimestamp" in pod["metadata"])
    assert stopping["status"]["phase"] == "Running"
    assert last["status"]["phase"] == "Failed"
    assert main_status(last)["state"]["terminated"]["exitCode"] == 143


async def test_a_program_that_ended_by_itself_keeps_its_end_however_soon_its_pod_is_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script(stop_exit_code=143)) as cluster:
        names = [f"worker-{number}" for number in range(8)]
        made = {name: await cluster.create_pod(builders.pod(name)) for name in names}
        for name in names:
            await cluster.until_phase(name, "Running")

        async def end(name: str) -> Any:
            await cluster.kubelet.finish(name)
            await cluster.delete(name)
            return (await cluster.versions(made[name]))[-1]

        lasts = await asyncio.gather(*map(end, names))
    assert {main_status(last)["state"]["terminated"]["exitCode"] for last in lasts} == {0}
    assert {last["status"]["phase"] for last in lasts} == {"Succeeded"}


SIDECARS = [{"name": "proxy", "image": "registry.example/proxy:1"}]


async def test_a_native_sidecar_is_stopped_when_the_program_has_ended_and_fails_no_pod(
    control_plane: ControlPlane, namespace: str
) -> None:
    script = Script(run_for=0.2, sidecars={"proxy": Sidecar(exit_code=137, restarts=2)})
    inits = [{**SIDECARS[0], "restartPolicy": "Always"}]
    async with box(control_plane, namespace, script) as cluster:
        made = await cluster.create_pod(builders.pod("worker-0", initContainers=inits))
        *before, over = await cluster.versions(made, lambda pod: pod["status"]["phase"] == "Succeeded")
    alive = next(pod for pod in before if pod["status"]["phase"] == "Running")
    assert "running" in alive["status"]["initContainerStatuses"][0]["state"]
    (proxy,) = over["status"]["initContainerStatuses"]
    assert (proxy["state"]["terminated"]["exitCode"], proxy["restartCount"]) == (137, 2)
    assert main_status(over)["restartCount"] == 0


async def test_an_ordinary_sidecar_runs_on_until_the_deadline_of_its_pod(
    control_plane: ControlPlane, namespace: str
) -> None:
    script = Script(run_for=0.2, sidecars={"proxy": Sidecar()})
    async with box(control_plane, namespace, script) as cluster:
        pod = builders.pod("worker-0")
        pod["spec"]["containers"] += SIDECARS
        await cluster.create_pod(pod)
        alone = await cluster.until("worker-0", lambda pod: "Completed" in str(pod["status"]))
        deadline = {"spec": {"activeDeadlineSeconds": 1}}
        await cluster.client.send(requests.patch(requests.PODS.path(namespace, "worker-0"), deadline))
        over = await cluster.until_phase("worker-0", "Failed")
    assert alone["status"]["phase"] == "Running"
    assert "running" in alone["status"]["containerStatuses"][1]["state"]
    assert over["status"]["reason"] == "DeadlineExceeded"
    assert main_status(over)["state"]["terminated"]["exitCode"] == 0
    assert over["status"]["observedGeneration"] == over["metadata"]["generation"] == 2


async def test_a_pod_recreated_under_its_name_lives_its_own_life(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script()) as cluster:
        await cluster.create_pod(builders.pod("worker-0"))
        first = await cluster.until_phase("worker-0", "Running")
        await cluster.delete("worker-0")
        await cluster.until_gone("worker-0")
        await cluster.create_pod(builders.pod("worker-0"))
        second = await cluster.until_phase("worker-0", "Running")
        await cluster.kubelet.finish("worker-0", 0)
        await cluster.until_phase("worker-0", "Succeeded")
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_eviction_leaves_a_failed_pod_that_says_so(control_plane: ControlPlane, namespace: str) -> None:
    async with box(control_plane, namespace, Script()) as cluster:
        await cluster.create_pod(builders.pod("worker-0"))
        await cluster.until_phase("worker-0", "Running")
        await cluster.kubelet.evict("worker-0")
        pod = await cluster.until_phase("worker-0", "Failed")
    assert pod["status"]["reason"] == "Evicted"
    assert conditions(pod)["DisruptionTarget"] == "True"
    assert conditions(pod)["PodScheduled"] == "True"


async def test_preemption_marks_and_deletes(control_plane: ControlPlane, namespace: str) -> None:
    async with box(control_plane, namespace, Script(stop_after=0.3)) as cluster:
        made = await cluster.create_pod(builders.pod("worker-0"))
        await cluster.until_phase("worker-0", "Running")
        await cluster.kubelet.preempt("worker-0")
        versions = await cluster.versions(made)
    marked = next(pod for pod in versions if "deletionTimestamp" in pod["metadata"])
    reasons = [c.get("reason") for c in marked["status"]["conditions"] if c["type"] == "DisruptionTarget"]
    assert reasons == ["PreemptionByScheduler"]


async def test_a_lost_node_says_nothing_more_until_it_is_found(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script(), nodes=2) as cluster:
        await cluster.create_pod(builders.pod("worker-0"))
        await cluster.create_pod(builders.pod("worker-1"))
        lost = (await cluster.until_phase("worker-0", "Running"))["spec"]["nodeName"]
        await cluster.until_phase("worker-1", "Running")
        await cluster.kubelet.lose_node(lost)
        await cluster.delete("worker-0")
        await cluster.kubelet.finish("worker-1")
        await cluster.until_phase("worker-1", "Succeeded")
        still = await cluster.get("worker-0")
        await cluster.kubelet.find_node(lost)
        await cluster.until_gone("worker-0")
    assert still["metadata"]["deletionTimestamp"]
    assert still["status"]["phase"] == "Running"


async def test_what_ran_on_a_node_that_is_rebooted_is_lost_as_containerd_tells_it(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with box(control_plane, namespace, Script()) as cluster:
        for name, policy in (("once", "Never"), ("again", "OnFailure")):
            await cluster.create_pod(builders.pod(name, restart=policy))
            node = (await cluster.until_phase(name, "Running"))["spec"]["nodeName"]
        await cluster.kubelet.lose_node(node)
        await cluster.kubelet.find_node(node)
        once = await cluster.until_phase("once", "Failed")
        again = await cluster.until("again", lambda pod: main(pod)["restartCount"] == 1)
    ended = main(once)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"], main(once)["restartCount"]) == (255, "Unknown", 0)
    assert conditions(once).get("DisruptionTarget") is None
    assert main(again)["lastState"]["terminated"]["reason"] == "Unknown"
    assert "running" in main(again)["state"]


async def test_a_drained_node_sends_its_pods_away(control_plane: ControlPlane, namespace: str) -> None:
    async with box(control_plane, namespace, Script()) as cluster:
        await cluster.create_pod(builders.pod("worker-0"))
        node = (await cluster.until_phase("worker-0", "Running"))["spec"]["nodeName"]
        await asyncio.to_thread(control_plane.kubectl, "drain", node, "--force", "--timeout=90s")
        await cluster.until_gone("worker-0")


async def test_the_kubelet_survives_an_apiserver_restart(control_plane: ControlPlane, namespace: str) -> None:
    async with box(control_plane, namespace, Script(start_after=0.5, run_for=0.5)) as cluster:
        for number in range(20):
            await cluster.create_pod(builders.pod(f"worker-{number}"))
        control_plane.apiserver.kill()
        await asyncio.to_thread(control_plane.start, "kube-apiserver")
        for number in range(20):
            await cluster.until_phase(f"worker-{number}", "Succeeded")


async def test_an_indexed_job_completes_through_controller_manager_scheduler_and_kubelet(
    controllers: ControlPlane, namespace: str
) -> None:
    template = {"spec": builders.pod("x")["spec"]}
    spec = {"completions": 3, "parallelism": 3, "completionMode": "Indexed", "template": template}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": spec}
    async with controllers.client() as client, ScriptedKubelet(client, AT_ONCE, namespace, schedule=False):
        await asyncio.to_thread(
            controllers.kubectl, "create", "-n", namespace, "-f", "-", stdin=yaml.dump(job)
        )
        waiting = ("wait", "-n", namespace, "--for=condition=Complete", "job/train", "--timeout=60s")
        await asyncio.to_thread(controllers.kubectl, *waiting)
        done = await client.send(requests.get(JOBS.path(namespace, "train")))
    assert done["status"]["completedIndexes"] == "0-2"
    assert done["status"]["succeeded"] == 3
