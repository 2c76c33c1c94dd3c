"""`cleanPodPolicy: Running` keeps pods whose program has ended, with their logs: a kubelet still calls them
Running for a moment, and those that it would start again for longer."""

import pytest

from tests.controller.cluster import Bench, Manifest, bench, tfjob
from tfyard.kube import requests
from tfyard.testing import ControlPlane, Pod, Script, eventually

pytestmark = pytest.mark.cluster

RUNNING = {"cleanPodPolicy": "Running"}


async def pod(yard: Bench, name: str) -> Manifest:
    found: Manifest = await yard.client.send(requests.get(requests.PODS.path(yard.namespace, name)))
    return found


async def test_a_pod_whose_program_has_ended_is_kept_though_it_still_counts_as_running(
    control_plane: ControlPlane, namespace: str
) -> None:
    done, serving = Script(run_for=0.3, phase_lag=2.0), Script()

    def script(pod: Pod) -> Script:
        return serving if "ps" in pod.metadata.name else done

    async with bench(control_plane, namespace, script) as yard:
        await yard.submit(tfjob(policy=RUNNING, Worker=1, PS=1))
        status = await yard.phase("Succeeded")
        assert status["replicaStatuses"]["Worker"]["succeeded"] == 1

        async def at_rest() -> None:
            assert (await pod(yard, "train-worker-0"))["status"]["phase"] == "Succeeded"

        await eventually(at_rest)
        await yard.pods({"train-worker-0"})


async def test_a_program_that_is_out_of_retries_is_not_run_again_and_its_pod_stays(
    control_plane: ControlPlane, namespace: str
) -> None:
    def script(pod: Pod) -> Script:
        if "ps" in pod.metadata.name:
            return Script()
        return Script(run_for=0.2, exit_codes=(7,), restart_after=300, phase_lag=0.3)

    async with bench(control_plane, namespace, script) as yard:
        worker = {"restartPolicy": "OnFailure"}
        await yard.submit(tfjob(policy={**RUNNING, "backoffLimit": 1}, Worker=worker, PS=1))
        failure = (await yard.phase("Failed"))["failure"]
        assert (failure["cause"], failure["exitCode"]) == ("BackoffLimitExceeded", 7)

        async def ended() -> Manifest:
            found = (await pod(yard, "train-worker-0"))["status"]
            assert (found["phase"], found.get("reason")) == ("Failed", "DeadlineExceeded")
            return found

        (trainer,) = (await eventually(ended))["containerStatuses"]
        assert trainer["restartCount"] == 1, "one was allowed, and no other was made"
        assert "running" not in trainer["state"]
        await yard.pods({"train-worker-0"})

        async def told() -> None:
            events = await yard.client.send(requests.get(f"/api/v1/namespaces/{namespace}/events"))
            texts = [e["message"] for e in events["items"] if e["reason"] == "StoppedRestarts"]
            assert texts == ["The job has ended, so the program is not started again in pod: train-worker-0"]

        await eventually(told)
