"""Workloads of Kubernetes users become Jobs: what is converted, what is guessed, what is refused."""

import json
from typing import Any

import pytest
import yaml

from tfyard import formats
from tfyard.formats.workloads.load import Converted, load
from tfyard.model import Job

PROGRAM = ["python", "train.py"]


def workload(kind: str, name: str, version: str, container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    labels = spec.pop("labels", {})
    pod = spec.pop("pod", {})
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example/train:1", **container}], **pod},
    }
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**spec, "template": template},
    }


def batch_job(name: str = "train", **spec: Any) -> dict[str, Any]:
    return workload("Job", name, "batch/v1", {"command": PROGRAM}, **spec)


def service(name: str, **selector: str) -> dict[str, Any]:
    spec = {"selector": selector, "ports": [{"port": 5000}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def read(*objects: dict[str, Any], allow_missing: bool = False) -> list[Converted]:
    return load(formats.read(yaml.safe_dump_all(objects)), allow_missing=allow_missing)


def convert(*objects: dict[str, Any], allow_missing: bool = False) -> Converted:
    (result,) = read(*objects, allow_missing=allow_missing)
    return result


def job(*objects: dict[str, Any]) -> Job:
    result = convert(*objects)
    assert not result.problems
    return result.one


def errors(*objects: dict[str, Any]) -> list[str]:
    problems = [problem for result in read(*objects) for _, problem in result.problems]
    assert all(problem.position for problem in problems)
    return [f"{'.'.join(map(str, problem.path))}: {problem.message}" for problem in problems]


def test_a_job_alone_is_one_worker_with_its_limits_and_its_name() -> None:
    result = convert(batch_job(activeDeadlineSeconds=600, ttlSecondsAfterFinished=60))
    (role,) = result.one.roles
    assert (result.one.name, role.name, role.replicas, role.restart) == ("train", "Worker", 1, "OnFailure")
    policy = result.one.run_policy
    assert (policy.backoff_limit, policy.deadline, policy.ttl) == (6, 600, 60)
    assert role.template["spec"]["containers"] == [
        {"name": "tensorflow", "image": "example/train:1", "command": PROGRAM}
    ]
    assert result.said == ["Job train is taken for a worker: nothing in it names a role"]


@pytest.mark.parametrize(
    ("limit", "restart", "kept"), [(0, "Never", None), (2, "OnFailure", 2), (None, "OnFailure", 6)]
)
def test_a_job_restarts_as_often_as_kubernetes_did(limit: int | None, restart: str, kept: int | None) -> None:
    converted = job(batch_job(backoffLimit=limit, pod={"restartPolicy": "Never"}))
    assert (converted.roles[0].restart, converted.run_policy.backoff_limit) == (restart, kept)
    assert "restartPolicy" not in converted.roles[0].template["spec"]


def test_an_indexed_job_is_as_many_workers_that_know_their_index_and_all_must_succeed() -> None:
    converted = job(batch_job(completions=3, parallelism=3, completionMode="Indexed"))
    (role,) = converted.roles
    assert (role.replicas, converted.success) == (3, "AllWorkers")
    assert role.template["spec"]["containers"][0]["env"] == [
        {"name": "JOB_COMPLETION_INDEX", "value": "$(TASK_INDEX)"}
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"completions": 5, "parallelism": 2, "completionMode": "Indexed"},
            "spec.parallelism: must be 5, as completions: the tasks of a job run at the same time",
        ),
        (
            {"parallelism": 2},
            "spec.parallelism: must be 1: without an index, equal pods would all be the same task",
        ),
        ({"backoffLimit": "many"}, "spec.backoffLimit: must be a whole number from 0 to 2147483647"),
    ],
)
def test_what_a_job_cannot_carry_over_is_refused_with_its_place(spec: dict[str, Any], message: str) -> None:
    assert errors(batch_job(**spec)) == [message]


def test_a_stateful_set_has_as_many_tasks_and_its_flags_become_variables() -> None:
    line = (
        "python t.py --job_name=worker --task_index=$(hostname | sed 's/.*-//') --worker_hosts=$HOSTS; date"
    )
    container = {"command": ["/bin/bash", "-c", line]}
    converted = job(workload("StatefulSet", "nlp-worker", "apps/v1beta1", container, replicas=4))
    (role,) = converted.roles
    assert (converted.name, role.name, role.replicas, converted.success) == ("nlp", "Worker", 4, "")
    assert role.template["spec"]["containers"][0]["command"][2] == (
        "python t.py --job_name=$JOB_NAME --task_index=$TASK_INDEX --worker_hosts=$WORKER_HOSTS; date"
    )


def test_volumes_of_each_pod_and_equal_pods_are_refused() -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {}}]
    assert errors(
        workload("StatefulSet", "a-worker", "apps/v1", {}, volumeClaimTemplates=claims),
        workload("Deployment", "a-ps", "extensions/v1beta1", {}, replicas=2),
    ) == [
        "spec.volumeClaimTemplates: each pod has a volume of its own, but the tasks of a role share their volumes",
        "spec.replicas: must be 1: equal pods would all be the same task",
    ]


def task(
    kind: str, role: str, index: int, workers: int, version: str = "extensions/v1beta1"
) -> dict[str, Any]:
    """A task in the style of 2016: a program and its arguments, short host names, one object per task."""
    hosts = ",".join(f"mnist-worker-{i}:5000" for i in range(workers))
    args = [
        f"--task_index={index}",
        "--job_name",
        role,
        f"--worker_hosts={hosts}",
        "--ps_hosts=mnist-ps-0:5000",
    ]
    container = {"name": "tensorflow", "command": PROGRAM, "args": args, "ports": [{"containerPort": 5000}]}
    labels = {"name": "mnist", "job": role, "task": str(index)}
    return workload(kind, f"mnist-{role}-{index}", version, container, labels=labels)


@pytest.mark.parametrize("kind", ["ReplicaSet", "Deployment"])
def test_a_cluster_with_an_object_for_each_task_is_one_job(kind: str) -> None:
    services = [service(f"mnist-{name}", task=name[-1]) for name in ("worker-0", "worker-1", "ps-0")]
    tasks = [task(kind, "worker", 0, 2), task(kind, "worker", 1, 2), task(kind, "ps", 0, 2)]
    result = convert(*services, *tasks)
    assert (result.one.name, result.problems) == ("mnist", [])
    assert [(role.name, role.replicas, role.port) for role in result.one.roles] == [
        ("Worker", 2, 5000),
        ("PS", 1, 5000),
    ]
    assert result.one.roles[0].template["spec"]["containers"][0]["command"] == [
        *PROGRAM,
        "--task_index=$(TASK_INDEX)",
        "--job_name",
        "$(JOB_NAME)",
        "--worker_hosts=$(WORKER_HOSTS)",
        "--ps_hosts=$(PS_HOSTS)",
    ]
    assert f"a task is restarted when it fails; {kind}s restarted every task that ended" in result.said


def test_peers_that_are_not_in_the_input_are_named_unless_allowed() -> None:
    (message,) = errors(task("ReplicaSet", "worker", 0, 3), task("ReplicaSet", "worker", 2, 3))
    lost = "ps 0 (mnist-ps-0:5000), worker 1 (mnist-worker-1:5000)"
    assert (
        message
        == f"spec.template.spec.containers: tasks that belong to this one are not in the input: {lost}"
    )
    result = convert(
        task("ReplicaSet", "worker", 0, 3), task("ReplicaSet", "worker", 2, 3), allow_missing=True
    )
    assert [(role.name, role.replicas) for role in result.one.roles] == [("Worker", 2)]
    assert f"tasks that are not in the input are left out: {lost}" in result.said


def test_a_service_for_a_role_without_a_workload_is_a_missing_peer() -> None:
    worker = workload("Deployment", "a-worker", "apps/v1", {"command": PROGRAM}, labels={"app": "w"})
    assert "ps (a-ps)" in errors(worker, service("a-ps", app="ps"))[0]
    assert errors(worker, service("a-worker", app="w")) == []


def test_a_cluster_in_tf_config_is_read_and_tf_config_is_removed() -> None:
    objects = []
    for role in ("worker", "evaluator"):
        cluster = {"worker": ["w-0:1"], "evaluator": ["e-0:1"]}
        config = {"cluster": cluster, "task": {"type": role, "index": "0"}}
        env = [{"name": "TF_CONFIG", "value": json.dumps(config)}, {"name": "A", "value": "b"}]
        objects.append(workload("ReplicationController", role[0], "v1", {"env": env}))
    result = convert(*objects)
    assert [(role.name, role.replicas) for role in result.one.roles] == [("Worker", 1), ("Evaluator", 1)]
    assert result.one.roles[0].template["spec"]["containers"][0]["env"] == [{"name": "A", "value": "b"}]
    assert "TF_CONFIG removed: tfyard sets it for every task" in result.said
    assert "evaluator 0 (e-0:1)" in errors(objects[0])[0]


def test_a_cluster_in_a_config_map_is_read_as_python_wrote_it() -> None:
    cluster = '{"ps": ["ps-0.a.svc:8080",], "worker": ["worker-0.a.svc:8080", "worker-1.a.svc:8080",],}'
    maps = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c"},
        "data": {"clusterconfig": cluster},
    }
    source = {"configMapKeyRef": {"name": "c", "key": "clusterconfig"}}
    container = {"env": [{"name": "CLUSTER_CONFIG", "valueFrom": source}], "ports": [{"containerPort": 8080}]}
    tasks = [
        workload(
            "Deployment", f"{role}-{i}", "extensions/v1beta1", container, labels={"job": role, "task": str(i)}
        )
        for role, i in (("ps", 0), ("worker", 0), ("worker", 1))
    ]
    result = convert(maps, *tasks)
    assert result.one.name == "training"
    assert [(role.name, role.replicas) for role in result.one.roles] == [("Worker", 2), ("PS", 1)]
    assert "worker 1 (worker-1.a.svc:8080)" in errors(maps, *tasks[:2])[0]


def test_files_that_tasks_name_after_themselves_do_not_make_them_different() -> None:
    tasks = [
        workload(
            "Job",
            f"a-worker-{i}",
            "batch/v1",
            {"command": ["sh", "-c", f"x > /log/a-worker-{i}.txt; echo y"]},
        )
        for i in (0, 1)
    ]
    result = convert(*tasks)
    assert (
        result.one.roles[0].template["spec"]["containers"][0]["command"][2]
        == "x > /log/a-worker-${TASK_INDEX}.txt; echo y"
    )
    assert "Job a-worker-1 is taken for worker 1, by its name" in result.said


def test_two_clusters_are_two_jobs_and_jobs_that_train_alone_are_one_each() -> None:
    other = yaml.safe_load(
        yaml.safe_dump([task("Deployment", "worker", 0, 1), task("Deployment", "ps", 0, 1)]).replace(
            "mnist", "nlp"
        )
    )
    results = read(task("Deployment", "worker", 0, 1), task("Deployment", "ps", 0, 1), *other)
    assert [(result.one.name, result.one.size) for result in results] == [("mnist", 2), ("nlp", 2)]
    assert [result.one.name for result in read(batch_job("a"), batch_job("b"))] == ["a", "b"]
    results = read(batch_job("load-data"), task("Deployment", "worker", 0, 1), task("Deployment", "ps", 0, 1))
    assert [(result.one.name, result.one.size) for result in results] == [("mnist", 2), ("load-data", 1)]


def test_a_tensorboard_beside_a_cluster_is_kept_and_other_workloads_need_a_role() -> None:
    board = workload("Deployment", "board", "apps/v1", {"command": ["tensorboard", "--logdir=/out"]})
    tasks = task("Deployment", "worker", 0, 1), task("Deployment", "ps", 0, 1)
    assert convert(*tasks, board, service("board", app="board")).kept == ["Deployment board", "Service board"]
    (message,) = errors(*tasks, workload("Deployment", "web", "apps/v1", {}))
    assert message == "spec.template.spec.containers: the role of Deployment web is unknown"


@pytest.mark.parametrize("kind", ["CronJob", "DaemonSet", "Pod"])
def test_kinds_that_cannot_be_a_job_are_refused_with_the_reason(kind: str) -> None:
    (message,) = errors({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}})
    assert message.startswith(f"kind: a {kind} ")


def test_a_job_of_another_group_is_not_read() -> None:
    assert read({**batch_job(), "apiVersion": "batch.volcano.sh/v1alpha1"}) == []


def test_fields_of_a_job_that_a_tfjob_does_not_have_are_reported() -> None:
    result = convert(batch_job(podFailurePolicy={"rules": []}, backoffLimitPerIndex=1))
    assert (
        "backoffLimitPerIndex, podFailurePolicy of Job train left out: a TFJob has nothing like it"
        in result.said
    )


def test_a_job_as_kubectl_prints_it_loses_what_its_controller_added() -> None:
    labels = {
        "controller-uid": "1",
        "batch.kubernetes.io/job-name": "train",
        "job-name": "train",
        "team": "a",
    }
    converted = job(batch_job(labels=labels, selector={"matchLabels": {"controller-uid": "1"}}))
    assert converted.roles[0].template["metadata"] == {"labels": {"team": "a"}}


def test_arguments_for_the_entrypoint_of_an_image_stay_arguments() -> None:
    converted = job(workload("Job", "train", "batch/v1", {"args": ["--max_steps", "500"]}))
    container = converted.roles[0].template["spec"]["containers"][0]
    assert (container.get("command"), container["args"]) == (None, ["--max_steps", "500"])


def test_a_name_of_a_job_that_is_no_host_name_is_changed_and_reported() -> None:
    result = convert(batch_job("2018.run"))
    assert result.one.name == "run"
    assert "the job is called run: 2018.run cannot be part of host names" in result.said


def test_every_problem_of_every_object_is_reported_at_once() -> None:
    bad = batch_job("a", parallelism=2, pod={"volumes": [{"name": "V"}]})
    bad["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "x", "mountPath": "/x"}]
    messages = errors(
        bad, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "b"}, "spec": {}}
    )
    assert len(messages) == 4, messages
