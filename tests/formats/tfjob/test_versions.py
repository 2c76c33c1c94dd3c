"""Every published version is read with its own defaults, and converted to today's formats."""

from pathlib import Path
from typing import Any

import pytest

from tests.formats.samples import (
    DATA,
    EVERY,
    NOW,
    SEEDS,
    again,
    created,
    decide,
    document,
    load,
)
from tfyard import formats, planner
from tfyard.formats.pods import templates
from tfyard.model import Job, Observed, Stall, Task, TensorBoard
from tfyard.planner.site import Accelerator, DriverEnv, DriverMount

IDS = [path.name for path in EVERY]
OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"


@pytest.mark.parametrize("path", EVERY, ids=IDS)
def test_every_sample_is_valid_without_a_warning_but_that_of_the_labs_about_restarts(path: Path) -> None:
    problems = formats.check(document(path)).problems
    assert templates.without_restarts(problems) == ()
    assert problems or not path.name.startswith("001-")


@pytest.mark.parametrize("version", ["v1", "jobfile"])
@pytest.mark.parametrize("path", EVERY, ids=IDS)
def test_every_sample_converts_to_a_job_of_the_same_plan(path: Path, version: formats.Version) -> None:
    job = formats.load(document(path))
    written = again(job, version)
    assert [(r.name, r.replicas, r.restart, r.port) for r in written.roles] == [
        (r.name, r.replicas, r.restart, r.port) for r in job.roles
    ]
    assert written.run_policy.clean == job.run_policy.clean
    assert written.dialect == job.dialect
    kept = {name for name in created(decide(job)) if version == "jobfile" or "tensorboard" not in name}
    assert set(created(decide(written))) == kept


@pytest.mark.parametrize("path", SEEDS, ids=[path.name for path in SEEDS])
def test_every_sample_of_v1alpha1_creates_its_master(path: Path) -> None:
    job = formats.load(document(path))
    assert created(decide(job)) == [f"Pod/{job.name}-master-0"]


@pytest.mark.parametrize(
    ("name", "clean", "dialect"),
    [
        ("kubeflow.org/v1", "None", "tf2"),
        ("kubeflow.org/v1beta2", "Running", "tf1"),
        ("kubeflow.org/v1beta1", "Running", "tf1"),
        ("kubeflow.org/v1alpha2", "Running", "tf1"),
    ],
)
def test_a_version_with_a_map_of_roles_has_its_own_defaults(name: str, clean: str, dialect: str) -> None:
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "a"}], "restartPolicy": "Always"}}
    spec = {"tfReplicaSpecs": {"Worker": {"template": template}}}
    job = formats.load({"apiVersion": name, "kind": "TFJob", "metadata": {"name": "a"}, "spec": spec})
    assert (job.run_policy.clean, job.dialect, job.api_version) == (clean, dialect, name)
    assert (job.role("Worker").restart, job.role("Worker").replicas) == ("Never", 1)  # type: ignore[union-attr]
    assert (job.namespace, job.success, job.fails_with, job.services) == ("default", "", "any", None)


@pytest.mark.parametrize(
    ("group", "kind", "clean"),
    [("tensorflow.org", "TfJob", "None"), ("kubeflow.org", "TFJob", "All"), ("kubeflow.org", "TfJob", "All")],
)
def test_v1alpha1_defaults_to_one_master_whose_end_counts(group: str, kind: str, clean: str) -> None:
    spec = {"replicaSpecs": [{"template": {"spec": {"containers": [{"name": "tensorflow", "image": "a"}]}}}]}
    data = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}
    job = formats.load(data)
    assert (job.run_policy.clean, job.dialect, job.fails_with) == (clean, "tf1", "chief")
    assert [(r.name, r.replicas, r.restart, r.port) for r in job.roles] == [("Master", 1, "ExitCode", 2222)]
    assert (job.api_version, job.kind) == (f"{group}/v1alpha1", kind)


def test_a_job_file_deletes_only_running_pods_at_the_end() -> None:
    job = load("jobfiles/image-only.yaml")
    assert (job.run_policy.clean, job.dialect) == ("Running", "tf2")
    assert [(r.name, r.replicas, r.restart) for r in job.roles] == [("Worker", 1, "Never")]


def test_what_the_environment_takes_from_secrets_comes_first_so_that_values_may_refer_to_it() -> None:
    words = {"name": "a", "image": "x", "env": {"URL": "https://$(TOKEN)@host"}, "secrets": {"TOKEN": "s/t"}}
    (role,) = formats.load(words).roles
    (container,) = role.template["spec"]["containers"]
    assert [entry["name"] for entry in container["env"]] == ["TOKEN", "URL"]


def test_the_distributed_example_has_its_roles_in_the_usual_order() -> None:
    job = load("manifests/v1-dist-mnist.yaml")
    assert [(role.name, role.replicas) for role in job.roles] == [("Chief", 1), ("Worker", 2), ("PS", 1)]
    assert job.namespace == "kubeflow"


def test_a_nested_run_policy_is_read() -> None:
    job = load("manifests/v1-multi-worker.yaml")
    policy = job.run_policy
    assert (policy.clean, policy.backoff_limit, policy.deadline, policy.ttl) == ("None", 3, 3600, 0)
    assert policy.scheduling is not None
    assert (policy.scheduling.queue, policy.scheduling.min_resources) == ("training", {"cpu": "4"})
    assert (job.success, job.dynamic_workers) == ("AllWorkers", True)


def test_a_flat_run_policy_is_read_and_so_are_roles_in_any_letter_case() -> None:
    job = load("manifests/v1-flat-run-policy.yaml")
    policy = job.run_policy
    assert (policy.clean, policy.backoff_limit, policy.deadline, policy.ttl) == ("All", 0, 60, 5)
    assert [role.name for role in job.roles] == ["Worker", "PS", "Evaluator"]
    assert job.name == "flat-00000"


def test_the_master_of_lab_7_stays_a_master_and_a_null_list_is_an_empty_one() -> None:
    job = load("manifests/v1alpha2-lab7.yaml")
    assert [role.name for role in job.roles] == ["Master", "Worker", "PS"]
    assert [role.restart for role in job.roles] == ["Never"] * 3
    assert created(decide(job))[-1] == "Pod/module7-ex1-gpu-ps-0"


def test_v1alpha1_brings_its_server_its_board_its_port_and_a_gpu_that_nodes_still_offer() -> None:
    job = load("manifests/v1alpha1-default-ps.yaml")
    worker, server = job.roles
    assert (worker.port, server.port) == (3333, 2222)
    assert (worker.is_default_server, server.is_default_server) == (False, True)
    assert server.template["spec"]["containers"][0]["image"] == "tensorflow/tensorflow:1.3.0"
    assert worker.template["spec"]["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert job.chief is None  # WORKER 0 is what the usual rule finds where there is no master
    assert job.tensorboard == TensorBoard(
        log_dir="/tmp/tensorflow/logs",
        image="tensorflow/tensorflow:1.3.0",
        service_type="LoadBalancer",
        volumes=(
            {"name": "azurefile", "azureFile": {"secretName": "azure-secret", "shareName": "tensorflow"}},
        ),
        mounts=({"name": "azurefile", "mountPath": "/tmp/tensorflow", "subPath": "smoke"},),
    )


def test_the_board_of_v1alpha1_survives_the_way_into_a_job_file() -> None:
    job = load("manifests/v1alpha1-default-ps.yaml")
    assert again(job, "jobfile").tensorboard == job.tensorboard


def test_a_chief_of_v1alpha1_that_the_usual_rule_would_not_find_is_named() -> None:
    data: dict[str, Any] = document(DATA / "manifests/v1alpha1-master.yaml").data
    chief = {"replicaName": "WORKER", "replicaIndex": 0}
    job = formats.load({**data, "spec": {**data["spec"], "terminationPolicy": {"chief": chief}}})
    assert job.chief == Task("Worker", 0)
    for version in ("v1", "jobfile"):
        lost = " ".join(formats.dump(job, version).lost)
        assert "worker-0" in lost
        assert "a failed worker fails the job" in lost


def test_the_scheduler_and_the_restart_policies_of_v1alpha1_are_carried() -> None:
    job = load("manifests/v1alpha1-master.yaml")
    assert [role.restart for role in job.roles] == ["ExitCode", "Always"]
    assert {role.template["spec"]["schedulerName"] for role in job.roles} == {"kube-batch"}
    assert job.run_policy.clean == "Running"


def test_the_accelerators_of_seed_004_reach_its_tfjob_under_the_old_name_of_the_gpu() -> None:
    job = load("seeds/004-example-tfjob.yaml")
    mount = DriverMount(name="lib", host_path="/usr/lib/nvidia-384", mount_path="/usr/lib/nvidia")
    env = DriverEnv(name="LD_LIBRARY_PATH", value="/usr/lib/nvidia:/usr/lib/x86_64-linux-gnu")
    site = planner.Site(accelerators={OLD_GPU: Accelerator(volumes=(mount,), env_vars=(env,))})
    (pod,) = (action.manifest for action in planner.decide(job, Observed(), site, NOW).actions)  # type: ignore[union-attr]
    (container,) = pod["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "lib", "mountPath": "/usr/lib/nvidia"}]
    assert pod["spec"]["volumes"] == [{"name": "lib", "hostPath": {"path": "/usr/lib/nvidia-384"}}]
    assert {"name": env.name, "value": env.value} in container["env"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1}


def test_times_that_mean_never_are_accepted() -> None:
    data = document(DATA / "manifests/v1-dist-mnist.yaml").data
    data["spec"]["runPolicy"] = {"ttlSecondsAfterFinished": 2**31 - 1, "activeDeadlineSeconds": 2**62}
    policy = formats.load(data).run_policy
    assert (policy.ttl, policy.deadline) == (2**31 - 1, 2**31 - 1)
    assert again(formats.load(data), "jobfile").run_policy == policy


def test_a_gpu_has_its_name_of_today_in_init_containers_too() -> None:
    data = document(DATA / "seeds/004-example-tfjob.yaml").data
    (role,) = data["spec"]["replicaSpecs"]
    first = {"name": "warm-up", "image": "example", "resources": {"limits": {OLD_GPU: 1}}}
    role["template"]["spec"]["initContainers"] = [first, {"name": "fetch", "image": "example"}]
    (loaded,) = formats.load(data).roles
    warm_up, fetch = loaded.template["spec"]["initContainers"]
    assert warm_up["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert "resources" not in fetch


def test_a_kubectl_list_is_split_and_each_item_keeps_its_own_place() -> None:
    first, beside, second = formats.split(document(DATA / "manifests/list.yaml"))
    assert [formats.is_job(part.data) for part in (first, beside, second)] == [True, False, True]
    job = formats.load(first)
    assert (job.name, job.namespace, job.generation, job.uid[:8]) == ("first", "team-a", 3, "6a1f0c52")
    (problem,) = formats.check(second).problems
    assert (problem.position.line, problem.position.column) == (28, 19)  # type: ignore[union-attr]


def test_an_annotation_of_tfyard_is_a_field_of_the_job() -> None:
    data = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob"}
    template = {"spec": {"containers": [{"name": "tensorflow", "image": "a"}]}}
    notes = {
        "tfyard.dev/dialect": "tf1",
        "tfyard.dev/services": "per-replica",
        "tfyard.dev/evaluator-grace": "5m",
        "tfyard.dev/stall": "15m, then restart",
        "own": "x",
    }
    spec = {"tfReplicaSpecs": {"Evaluator": {"template": template}, "Worker": {"template": template}}}
    job: Job = formats.load({**data, "metadata": {"name": "a", "annotations": notes}, "spec": spec})
    assert (job.dialect, job.services, job.run_policy.evaluator_grace) == ("tf1", "per-replica", 300)
    assert job.run_policy.stall == Stall(after=900, then="restart")
    assert job.annotations == {"own": "x"}
    assert formats.dump(job, "v1").document["metadata"]["annotations"] == notes
