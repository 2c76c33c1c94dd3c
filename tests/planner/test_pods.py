"""Pods: the user's template, and what makes it this task of this job."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import Job, MLflow, Role, Task
from tfyard.planner import Site

from .builders import (
    IMAGE,
    chief,
    created,
    evaluator,
    job,
    look,
    manifests,
    master,
    role,
    servers,
    trainer,
    workers,
)

OWNER = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "name": "mnist",
    "uid": "u-1",
    "controller": True,
    "blockOwnerDeletion": True,
}


def test_a_pod_is_whole() -> None:
    asked = job(workers(2, "ExitCode"))
    tf_config = (
        '{"cluster":{"worker":["mnist-worker-0.mnist.lab.svc:2222","mnist-worker-1.mnist.lab.svc:2222"]},'
        '"task":{"type":"worker","index":1},"environment":"cloud"}'
    )
    assert manifests(look(asked))["mnist-worker-1"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "mnist-worker-1",
            "namespace": "lab",
            "labels": {
                "app.kubernetes.io/name": "mnist",
                "app.kubernetes.io/component": "worker",
                "app.kubernetes.io/managed-by": "tfyard",
                "training.kubeflow.org/operator-name": "tfjob-controller",
                "training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "1",
            },
            "annotations": {"tfyard.dev/attempt": "0"},
            "ownerReferences": [OWNER],
        },
        "spec": {
            "containers": [
                {
                    "name": "tensorflow",
                    "image": IMAGE,
                    "terminationMessagePolicy": "FallbackToLogsOnError",
                    "ports": [{"name": "tfjob-port", "containerPort": 2222}],
                    "env": [{"name": "TF_CONFIG", "value": tf_config}],
                }
            ],
            "restartPolicy": "Never",
            "hostname": "mnist-worker-1",
            "subdomain": "mnist",
        },
    }


def masters(asked: Job) -> list[str]:
    label = "training.kubeflow.org/job-role"
    found = manifests(look(asked)).items()
    return [name for name, pod in found if pod["metadata"]["labels"].get(label) == "master"]


ROLES = {
    "a chief has the master's role": (job(chief(), workers(2)), ["mnist-chief-0"]),
    "a master has the master's role": (job(master(), workers(2)), ["mnist-master-0"]),
    "without a chief worker 0 has it": (job(workers(2), servers(1)), ["mnist-worker-0"]),
    "parameter servers alone have none": (job(servers(2)), []),
    "where the chief has no replica worker 0 has it": (
        job(chief(replicas=0), workers(2)),
        ["mnist-worker-0"],
    ),
    "a task named as chief by the format has it": (
        job(workers(3), chief=Task("Worker", 2)),
        ["mnist-worker-2"],
    ),
}


@pytest.mark.parametrize(("asked", "expected"), ROLES.values(), ids=ROLES.keys())
def test_the_master_label_marks_the_tasks_with_the_logs_that_tools_show(
    asked: Job, expected: list[str]
) -> None:
    assert masters(asked) == expected


@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never", "ExitCode"])
def test_the_roles_restart_policy_is_the_pods_except_for_exit_code(policy: str) -> None:
    spec = manifests(look(job(workers(1, policy))))["mnist-worker-0"]["spec"]
    assert spec["restartPolicy"] == ("Never" if policy == "ExitCode" else policy)


def with_metadata(**metadata: Any) -> Role:
    asked = workers(1)
    return replace(asked, template={**asked.template, "metadata": metadata})


@pytest.mark.parametrize(
    ("roles", "deciding"),
    [((workers(2),), "mnist-worker-0"), ((chief(), workers(2), servers(1)), "mnist-chief-0")],
)
def test_the_task_that_decides_goes_on_in_the_jobs_run_at_mlflow(
    roles: tuple[Role, ...], deciding: str
) -> None:
    asked = replace(job(*roles), mlflow=MLflow(uri="http://mlflow.lab", run="ab12"))
    told = {name: of_mlflow(pod) for name, pod in manifests(look(asked)).items() if of_mlflow(pod)}
    assert told == {deciding: {"MLFLOW_TRACKING_URI": "http://mlflow.lab", "MLFLOW_RUN_ID": "ab12"}}


def test_without_a_run_at_mlflow_no_task_is_told_of_one_and_the_users_own_variables_are_kept() -> None:
    for known in (MLflow(uri="http://mlflow.lab"), MLflow(run="ab12")):
        (pod,) = manifests(look(replace(job(workers(1)), mlflow=known))).values()
        assert of_mlflow(pod) == {}
    inside = {"name": "MLFLOW_TRACKING_URI", "value": "http://inside"}
    template = {"spec": {"containers": [{"name": "tensorflow", "image": IMAGE, "env": [inside]}]}}
    own = replace(workers(1), template=template)
    (pod,) = manifests(look(replace(job(own), mlflow=MLflow(uri="http://a", run="ab12")))).values()
    assert of_mlflow(pod) == {"MLFLOW_TRACKING_URI": "http://inside", "MLFLOW_RUN_ID": "ab12"}


def of_mlflow(pod: dict[str, Any]) -> dict[str, str]:
    (container,) = pod["spec"]["containers"]
    return {e["name"]: e["value"] for e in container.get("env") or () if e["name"].startswith("MLFLOW_")}


def test_the_templates_labels_annotations_and_finalizers_come_along() -> None:
    asked = with_metadata(labels={"team": "x"}, annotations={"note": "y"}, finalizers=["z/z"], name="ignored")
    metadata = manifests(look(job(asked)))["mnist-worker-0"]["metadata"]
    assert metadata["labels"]["team"] == "x"
    assert metadata["annotations"] == {"note": "y", "tfyard.dev/attempt": "0"}
    assert metadata["finalizers"] == ["z/z"]
    assert metadata["name"] == "mnist-worker-0"


def test_the_templates_labels_give_way_to_those_that_tools_find_pods_by() -> None:
    labels = {"training.kubeflow.org/job-name": "other", "app.kubernetes.io/name": "own"}
    found = manifests(look(job(with_metadata(labels=labels))))["mnist-worker-0"]["metadata"]["labels"]
    assert found["training.kubeflow.org/job-name"] == "mnist"
    assert found["app.kubernetes.io/name"] == "own"


def test_the_jobs_own_labels_and_annotations_stay_on_the_job() -> None:
    asked = job(workers(1), labels={"a": "b"}, annotations={"c": "d"})
    metadata = manifests(look(asked))["mnist-worker-0"]["metadata"]
    assert "a" not in metadata["labels"]
    assert "c" not in metadata["annotations"]


def test_a_job_in_no_cluster_owns_nothing_there() -> None:
    asked = job(workers(2), uid="")
    decision = look(asked)
    for action in decision.actions:
        assert "ownerReferences" not in action.manifest["metadata"]  # type: ignore[union-attr]


def test_every_child_has_the_job_as_its_controller_in_the_jobs_own_version() -> None:
    asked = job(workers(2), api_version="tensorflow.org/v1alpha1", kind="TfJob")
    owner = {**OWNER, "apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob"}
    owners = [action.manifest["metadata"]["ownerReferences"] for action in look(asked).actions]  # type: ignore[union-attr]
    assert owners == [[owner]] * 3


PORTS: dict[str, tuple[list[dict[str, Any]], int, list[dict[str, Any]]]] = {
    "the port is added where there is none": ([], 2222, [{"name": "tfjob-port", "containerPort": 2222}]),
    "a port of another number stays beside it": (
        [{"containerPort": 80}],
        2222,
        [{"containerPort": 80}, {"name": "tfjob-port", "containerPort": 2222}],
    ),
    "a port of that name is kept as it is": (
        [{"name": "tfjob-port", "containerPort": 5000}],
        5000,
        [{"name": "tfjob-port", "containerPort": 5000}],
    ),
    "a port of that number under another name is not listed twice": (
        [{"name": "grpc", "containerPort": 2222}],
        2222,
        [{"name": "grpc", "containerPort": 2222}],
    ),
}


@pytest.mark.parametrize(("given", "port", "expected"), PORTS.values(), ids=PORTS.keys())
def test_the_port_of_the_server_is_listed_once(given: Any, port: int, expected: Any) -> None:
    asked = replace(role("Worker", 1, ports=given), port=port)
    assert trainer(look(job(asked)), "worker-0")["ports"] == expected


def two_containers(names: tuple[str, str]) -> Role:
    containers = [{"name": name, "image": "i"} for name in names]
    init = [{"name": "fetch", "image": "i"}]
    spec = {"containers": containers, "initContainers": init}
    return Role(name="Worker", replicas=2, template={"spec": spec})


@pytest.mark.parametrize("names", [("sidecar", "tensorflow"), ("tensorflow", "sidecar")])
def test_only_the_container_that_trains_gets_the_cluster(names: tuple[str, str]) -> None:
    spec = manifests(look(job(two_containers(names))))["mnist-worker-0"]["spec"]
    assert [c["name"] for c in spec["containers"]] == list(names)
    assert [c["name"] for c in spec["containers"] if "env" in c or "ports" in c] == ["tensorflow"]


def test_without_the_name_the_first_container_trains() -> None:
    spec = manifests(look(job(two_containers(("main", "sidecar")))))["mnist-worker-0"]["spec"]
    assert ["env" in container for container in spec["containers"]] == [True, False]


def test_every_container_leaves_its_last_words_where_a_failure_can_quote_them() -> None:
    spec = manifests(look(job(two_containers(("tensorflow", "sidecar")))))["mnist-worker-0"]["spec"]
    found = {c["terminationMessagePolicy"] for c in (*spec["containers"], *spec["initContainers"])}
    assert found == {"FallbackToLogsOnError"}


def test_a_termination_message_policy_of_the_users_own_is_kept() -> None:
    asked = role("Worker", 1, terminationMessagePolicy="File")
    assert trainer(look(job(asked)), "worker-0")["terminationMessagePolicy"] == "File"


def test_fields_that_we_have_never_heard_of_pass_through() -> None:
    asked = workers(1)
    template = {"spec": {**asked.template["spec"], "fieldOfNextYear": {"a": 1}}}
    spec = manifests(look(job(replace(asked, template=template))))["mnist-worker-0"]["spec"]
    assert spec["fieldOfNextYear"] == {"a": 1}


def test_the_template_is_never_changed_in_place() -> None:
    env = [{"name": "A", "value": "1"}]
    asked = role("Worker", 2, env=env, ports=[{"containerPort": 80}])
    before = repr(asked)
    look(job(asked))
    assert repr(asked) == before


def test_pods_have_host_names_only_where_one_service_names_them_all() -> None:
    for site, has in ((Site(), True), (Site(services="per-replica"), False), (Site(services="none"), False)):
        spec = manifests(look(job(workers(2)), site=site))["mnist-worker-0"]["spec"]
        assert ("hostname" in spec, "subdomain" in spec) == (has, has)


def test_a_lone_pod_needs_no_host_name() -> None:
    assert "hostname" not in manifests(look(job(workers(1))))["mnist-worker-0"]["spec"]


def test_pods_are_made_role_by_role_and_in_order() -> None:
    asked = job(chief(), workers(2), servers(1), evaluator())
    names = ["chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0"]
    assert created(look(asked)) == [f"mnist-{name}" for name in names]
