"""The objects beside the pods: Services, TensorBoard."""

from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import ServiceMode, TensorBoard
from tfyard.planner import Site
from tfyard.planner.tensorboard import START

from .builders import begun, chief, created, deleted, job, look, manifests, pods, role, servers, workers
from .test_pods import OWNER

LABELS = {
    "training.kubeflow.org/operator-name": "tfjob-controller",
    "training.kubeflow.org/job-name": "mnist",
}


def test_one_headless_service_names_all_pods_before_they_are_ready() -> None:
    assert manifests(look(job(chief(), workers(2))), "Service") == {
        "mnist": {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "mnist", "namespace": "lab", "labels": LABELS, "ownerReferences": [OWNER]},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": LABELS,
                "ports": [{"name": "tf-2222", "port": 2222}],
            },
        }
    }


def test_a_service_of_its_own_for_each_replica_has_the_pods_name_and_labels() -> None:
    found = manifests(look(job(chief(), workers(1)), site=Site(services="per-replica")), "Service")
    labels = {
        **LABELS,
        "training.kubeflow.org/replica-type": "worker",
        "training.kubeflow.org/replica-index": "0",
    }
    assert list(found) == ["mnist-chief-0", "mnist-worker-0"]
    assert found["mnist-worker-0"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "mnist-worker-0",
            "namespace": "lab",
            "labels": labels,
            "ownerReferences": [OWNER],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": labels,
            "ports": [{"name": "tfjob-port", "port": 2222}],
        },
    }


COUNTS: dict[str, tuple[ServiceMode, int, int]] = {
    "a lone task needs no shared Service": ("shared", 1, 0),
    "many tasks share one Service": ("shared", 5, 1),
    "each replica has its own Service, even a lone one": ("per-replica", 1, 1),
    "five replicas have five Services": ("per-replica", 5, 5),
    "a laptop needs none": ("none", 5, 0),
}


@pytest.mark.parametrize(("mode", "size", "count"), COUNTS.values(), ids=COUNTS.keys())
def test_as_many_services_as_the_mode_needs(mode: ServiceMode, size: int, count: int) -> None:
    site = Site(services=mode, ports=dict.fromkeys(job(workers(5)).tasks(), 4000) if mode == "none" else {})
    assert len(created(look(job(workers(size)), site=site), "Service")) == count


def test_a_service_that_is_there_is_not_made_again() -> None:
    asked = job(workers(2))
    decision = look(asked, status=begun(asked), children=frozenset({("Service", "mnist")}))
    assert created(decision, "Service") == []


def test_a_deleted_service_is_created_again() -> None:
    asked = job(workers(2))
    seen = pods("worker-0", "worker-1")
    assert created(look(asked, *seen, status=begun(asked, *seen)), "Service") == ["mnist"]


def test_services_of_tasks_that_were_scaled_away_go() -> None:
    children = frozenset(("Service", f"mnist-worker-{i}") for i in range(3))
    status = begun(job(workers(3)), site=Site(services="per-replica"))
    decision = look(job(workers(1)), *pods("worker-0", "worker-1"), status=status, children=children)
    assert deleted(decision, "Service") == ["mnist-worker-1", "mnist-worker-2"]
    assert deleted(decision) == ["mnist-worker-1"]


def ports(*given: dict[str, Any]) -> Any:
    asked = job(role("Worker", 1, ports=list(given)))
    service = manifests(look(asked, site=Site(services="per-replica")), "Service")["mnist-worker-0"]
    return service["spec"]["ports"]


def test_a_replicas_service_offers_every_port_of_the_container_that_trains() -> None:
    assert ports({"name": "web", "containerPort": 80}, {"containerPort": 81}) == [
        {"name": "web", "port": 80},
        {"name": "port-81", "port": 81},
        {"name": "tfjob-port", "port": 2222},
    ]


def test_a_replicas_service_keeps_each_ports_protocol() -> None:
    dns = [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]
    assert ports(*dns)[:2] == [
        {"name": "port-53", "port": 53},
        {"name": "port-53-udp", "port": 53, "protocol": "UDP"},
    ]


def test_roles_with_ports_of_their_own_share_the_service() -> None:
    asked = job(workers(1), replace(servers(1), port=9000))
    service = manifests(look(asked), "Service")["mnist"]
    assert service["spec"]["ports"] == [{"name": "tf-2222", "port": 2222}, {"name": "tf-9000", "port": 9000}]


BOARD = TensorBoard(
    log_dir="/out/logs",
    service_type="LoadBalancer",
    volumes=({"name": "out", "emptyDir": {}},),
    mounts=({"name": "out", "mountPath": "/out"},),
)


def test_tensorboard_is_a_deployment_and_a_service_of_the_wished_type() -> None:
    decision = look(job(workers(1), tensorboard=BOARD))
    labels = {"app.kubernetes.io/name": "tensorboard", "app.kubernetes.io/instance": "mnist"}
    watched = {"training.kubeflow.org/operator-name": "tfjob-controller"}
    metadata = {
        "name": "mnist-tensorboard",
        "namespace": "lab",
        "labels": {**labels, "app.kubernetes.io/managed-by": "tfyard", **watched},
        "ownerReferences": [OWNER],
    }
    options = ["--logdir", "/out/logs", "--host", "0.0.0.0", "--port", "6006"]
    container = {
        "name": "tensorboard",
        "image": "tensorflow/tensorflow:2.20.0",
        "command": ["sh", "-c", START, "tensorboard", *options],
        "ports": [{"name": "http", "containerPort": 6006}],
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod_spec = {"containers": [container], "volumes": [{"name": "out", "emptyDir": {}}]}
    assert manifests(decision, "Deployment")["mnist-tensorboard"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec},
        },
    }
    assert manifests(decision, "Service")["mnist-tensorboard"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": "LoadBalancer",
            "selector": labels,
            "ports": [{"name": "http", "port": 80, "targetPort": 6006}],
        },
    }


def test_tensorboard_runs_the_jobs_own_image_if_it_names_one() -> None:
    asked = job(workers(1), tensorboard=TensorBoard(log_dir="/x", image="tf:1.3"))
    (board,) = manifests(look(asked), "Deployment").values()
    assert board["spec"]["template"]["spec"]["containers"][0]["image"] == "tf:1.3"


def test_a_laptop_gets_no_tensorboard_objects() -> None:
    asked = job(workers(1), tensorboard=BOARD)
    assert created(look(asked, site=Site(services="none")), "Deployment") == []


def test_a_scale_down_to_one_task_leaves_tensorboards_service() -> None:
    asked = job(workers(1), tensorboard=BOARD)
    children = frozenset(
        {("Service", "mnist"), ("Service", "mnist-tensorboard"), ("Deployment", "mnist-tensorboard")}
    )
    decision = look(asked, *pods("worker-0"), status=begun(job(workers(2))), children=children)
    assert deleted(decision, "Service") == ["mnist"]


def test_a_tensorboard_that_is_no_longer_asked_for_keeps_its_service_as_long_as_its_deployment() -> None:
    children = frozenset({("Service", "mnist-tensorboard"), ("Deployment", "mnist-tensorboard")})
    asked = job(workers(1))
    assert look(asked, *pods("worker-0"), status=begun(asked), children=children).actions == ()
