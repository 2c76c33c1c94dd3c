"""`tfyard dev` and pods that are not of jobs: kubectl debug without images, and a node that is deleted."""

from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.clusters import until
from tests.dev.running_box import TestBox, running

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBox]:
    with running(tmp_path_factory.mktemp("bare"), "--no-operator", name="bare") as box:
        yield box


def test_kubectl_debug_talks_with_a_process_inside_a_pod(bare: TestBox) -> None:
    container = {"name": "main", "image": "any", "command": ["sleep", "600"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asleep"},
        "spec": {"containers": [container]},
    }
    bare.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    bare.kubectl("wait", "--for=condition=Ready", "pod/asleep")
    options = ("--image=any", "-i", "-c", "visitor", "--", "sh")
    said = bare.kubectl("debug", "asleep", *options, stdin="hostname; echo $((6 * 7)); exit 3\n")
    assert said == "asleep\n42\n"
    assert bare.kubectl("logs", "asleep", "-c", "visitor") == said
    refusal = "container mute has no command, and images are not used here; add one, such as `kubectl debug "
    assert refusal in bare.kubectl("debug", "asleep", "--image=any", "-i", "-c", "mute")
    visitor, mute = bare.get("pod", "asleep")["status"]["ephemeralContainerStatuses"]
    assert visitor["state"]["terminated"]["exitCode"] == 3
    assert mute["state"]["terminated"]["reason"] == "StartError"
    bare.kubectl("delete", "pod", "asleep", "--now")


def test_a_node_that_is_deleted_comes_back(bare: TestBox) -> None:
    def uids() -> list[str]:
        return [node["metadata"]["uid"] for node in bare.get("nodes")["items"]]

    before = uids()
    bare.kubectl("delete", "node", bare.name)
    until(lambda: uids() not in ([], before))
    until(lambda: bare.status()["phase"] == "ready")
    run = (
        "run",
        "after",
        "--image=any",
        "-i",
        "--rm",
        "--restart=Never",
        "--quiet",
        "--command",
        "--",
        "cat",
    )
    assert bare.kubectl(*run, stdin="still here\n") == "still here\n"


def test_pods_do_not_see_variables_that_may_be_secrets(bare: TestBox) -> None:
    program = (
        "import os; print(sorted(name for name in os.environ if 'TOKEN' in name or 'KUBECONFIG' in name))"
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "looks"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "any", "command": ["python", "-c", program]}],
        },
    }
    bare.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    bare.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/looks", "--timeout=1m")
    assert bare.kubectl("logs", "looks") == "[]\n"
