"""TF_CONFIG in each dialect, byte for byte, and the ways around it."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tfyard.model import MASTER, PS, Task
from tfyard.planner import Site

from .builders import (
    begun,
    chief,
    created,
    env,
    evaluator,
    job,
    look,
    manifests,
    master,
    pod,
    pods,
    role,
    servers,
    trainer,
    workers,
)

FULL = (chief(), workers(2), servers(1), evaluator())
HOST = "mnist.lab.svc:2222"
OLD = "lab.svc:2222"

DIALECTS = {
    "tf2: a worker is told of everybody but the evaluator": (
        "tf2",
        "worker-1",
        f'{{"cluster":{{"chief":["mnist-chief-0.{HOST}"],"ps":["mnist-ps-0.{HOST}"],'
        f'"worker":["mnist-worker-0.{HOST}","mnist-worker-1.{HOST}"]}},'
        '"task":{"type":"worker","index":1},"environment":"cloud"}',
    ),
    "tf2: the evaluator finds itself in its own cluster": (
        "tf2",
        "evaluator-0",
        f'{{"cluster":{{"chief":["mnist-chief-0.{HOST}"],"evaluator":["mnist-evaluator-0.{HOST}"],'
        f'"ps":["mnist-ps-0.{HOST}"],"worker":["mnist-worker-0.{HOST}","mnist-worker-1.{HOST}"]}},'
        '"task":{"type":"evaluator","index":0},"environment":"cloud"}',
    ),
    "kubeflow: everybody is told of everybody, as upstream does": (
        "kubeflow",
        "ps-0",
        f'{{"cluster":{{"chief":["mnist-chief-0.{HOST}"],"evaluator":["mnist-evaluator-0.{HOST}"],'
        f'"ps":["mnist-ps-0.{HOST}"],"worker":["mnist-worker-0.{HOST}","mnist-worker-1.{HOST}"]}},'
        '"task":{"type":"ps","index":0},"environment":"cloud"}',
    ),
    "tf1: nobody is told of the evaluator": (
        "tf1",
        "evaluator-0",
        f'{{"cluster":{{"chief":["mnist-chief-0.{HOST}"],"ps":["mnist-ps-0.{HOST}"],'
        f'"worker":["mnist-worker-0.{HOST}","mnist-worker-1.{HOST}"]}},'
        '"task":{"type":"evaluator","index":0},"environment":"cloud"}',
    ),
}


@pytest.mark.parametrize(("dialect", "name", "text"), DIALECTS.values(), ids=DIALECTS.keys())
def test_tf_config_is_written_in_the_jobs_dialect(dialect: str, name: str, text: str) -> None:
    assert env(look(job(*FULL, dialect=dialect)), name) == {"TF_CONFIG": text}


MASTERS = {
    "TensorFlow 2 knows a master as chief": ("tf2", "chief"),
    "kubeflow keeps the master": ("kubeflow", "master"),
    "TensorFlow 1 keeps the master": ("tf1", "master"),
}


@pytest.mark.parametrize(("dialect", "kind"), MASTERS.values(), ids=MASTERS.keys())
def test_a_master_is_called_as_its_tensorflow_wants_it(dialect: str, kind: str) -> None:
    decision = look(job(master(), workers(1), dialect=dialect))
    assert env(decision, "master-0")["TF_CONFIG"] == (
        f'{{"cluster":{{"{kind}":["mnist-master-0.{HOST}"],"worker":["mnist-worker-0.{HOST}"]}},'
        f'"task":{{"type":"{kind}","index":0}},"environment":"cloud"}}'
    )


def cluster(asked: Any, name: str, site: Site = Site()) -> Any:  # noqa: B008
    return json.loads(env(look(asked, site=site), name)["TF_CONFIG"])["cluster"]


ADDRESSES = {
    "one Service for all names the pod, then the job": (Site(), f"mnist-worker-0.{HOST}"),
    "a Service of its own gives the old address": (Site(services="per-replica"), f"mnist-worker-0.{OLD}"),
    "a cluster domain stands at the end": (
        Site(domain="cluster.local"),
        "mnist-worker-0.mnist.lab.svc.cluster.local:2222",
    ),
    "the old address takes the cluster domain too": (
        Site(services="per-replica", domain="corp"),
        "mnist-worker-0.lab.svc.corp:2222",
    ),
    "on a laptop each task has a port": (
        Site(services="none", ports={Task("Worker", 0): 4001, Task("Worker", 1): 4002}),
        "127.0.0.1:4001",
    ),
}


@pytest.mark.parametrize(("site", "address"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_addresses_follow_the_place(site: Site, address: str) -> None:
    assert cluster(job(workers(2)), "worker-1", site)["worker"][0] == address


def test_each_role_is_reached_at_its_own_port() -> None:
    asked = job(workers(1), replace(servers(1), port=9000))
    assert cluster(asked, "worker-0") == {
        "ps": ["mnist-ps-0.mnist.lab.svc:9000"],
        "worker": ["mnist-worker-0.mnist.lab.svc:2222"],
    }


def test_a_role_of_0_replicas_is_not_listed() -> None:
    assert list(cluster(job(workers(2), servers(0)), "worker-0")) == ["worker"]


def test_a_lone_task_has_no_tf_config() -> None:
    assert env(look(job(workers(1), servers(0))), "worker-0") == {}


def test_a_lone_master_of_an_alpha_job_has_one() -> None:
    assert env(look(job(master(), dialect="tf1")), "master-0")["TF_CONFIG"] == (
        f'{{"cluster":{{"master":["mnist-master-0.{HOST}"]}},'
        '"task":{"type":"master","index":0},"environment":"cloud"}'
    )


def test_a_tf_config_of_the_users_own_is_kept_alone() -> None:
    own = [{"name": "TF_CONFIG", "value": "mine"}]
    decision = look(job(role("Worker", 2, env=own)))
    assert trainer(decision, "worker-0")["env"] == own


def test_tf_config_stands_after_the_users_environment() -> None:
    decision = look(job(role("Worker", 2, env=[{"name": "A", "value": "1"}])))
    assert [entry["name"] for entry in trainer(decision, "worker-0")["env"]] == ["A", "TF_CONFIG"]


ELASTIC = {
    "an elastic worker lists itself and the servers": (
        "worker-1",
        {
            "chief": [f"mnist-chief-0.{HOST}"],
            "ps": [f"mnist-ps-0.{HOST}"],
            "worker": {"1": f"mnist-worker-1.{HOST}"},
        },
    ),
    "a server of an elastic job lists no worker": (
        "ps-0",
        {"chief": [f"mnist-chief-0.{HOST}"], "ps": [f"mnist-ps-0.{HOST}"], "worker": {}},
    ),
    "the chief of an elastic job lists all on whom it may place work": (
        "chief-0",
        {
            "chief": [f"mnist-chief-0.{HOST}"],
            "ps": [f"mnist-ps-0.{HOST}"],
            "worker": [f"mnist-worker-0.{HOST}", f"mnist-worker-1.{HOST}"],
        },
    ),
    "the evaluator of an elastic job finds itself": (
        "evaluator-0",
        {
            "chief": [f"mnist-chief-0.{HOST}"],
            "evaluator": [f"mnist-evaluator-0.{HOST}"],
            "ps": [f"mnist-ps-0.{HOST}"],
            "worker": [f"mnist-worker-0.{HOST}", f"mnist-worker-1.{HOST}"],
        },
    ),
}


@pytest.mark.parametrize(("name", "expected"), ELASTIC.values(), ids=ELASTIC.keys())
def test_every_role_of_an_elastic_job_gets_a_cluster_it_can_use(name: str, expected: Any) -> None:
    text = env(look(job(*FULL, dynamic_workers=True)), name)["TF_CONFIG"]
    kind, _, index = name.partition("-")
    assert json.loads(text) == {"cluster": expected, "task": {"type": kind, "index": int(index)}}


def test_an_elastic_job_without_servers_lists_none() -> None:
    text = env(look(job(workers(2), dynamic_workers=True)), "worker-0")["TF_CONFIG"]
    assert (
        text
        == f'{{"cluster":{{"worker":{{"0":"mnist-worker-0.{HOST}"}}}},"task":{{"type":"worker","index":0}}}}'
    )


LARGE = job(chief(), workers(200), evaluator())


def test_a_large_cluster_is_written_once_into_an_immutable_config_map_made_before_the_pods() -> None:
    decision = look(LARGE)
    (name,) = created(decision, "ConfigMap")
    config = manifests(decision, "ConfigMap")[name]
    assert config["immutable"] is True
    assert sorted(config["data"]) == ["cluster", "evaluator"]
    assert len(json.loads(config["data"]["cluster"])["worker"]) == 200
    kinds = [action.kind for action in decision.actions]  # type: ignore[union-attr]
    assert kinds[:3] == ["ConfigMap", "Service", "Pod"]


def test_each_pod_of_a_large_cluster_expands_the_shared_text_in_this_order() -> None:
    decision = look(LARGE)
    (name,) = created(decision, "ConfigMap")
    assert trainer(decision, "worker-7")["env"] == [
        {"name": "TFYARD_CLUSTER", "valueFrom": {"configMapKeyRef": {"name": name, "key": "cluster"}}},
        {
            "name": "TF_CONFIG",
            "value": '{"cluster":$(TFYARD_CLUSTER),"task":{"type":"worker","index":7},"environment":"cloud"}',
        },
    ]
    own = trainer(decision, "evaluator-0")["env"][0]["valueFrom"]["configMapKeyRef"]
    assert own == {"name": name, "key": "evaluator"}


def test_a_large_cluster_expands_to_what_a_small_one_would_have_said() -> None:
    decision = look(LARGE)
    (config,) = manifests(decision, "ConfigMap").values()
    listed = json.loads(config["data"]["cluster"])
    assert listed["chief"] == [f"mnist-chief-0.{HOST}"]
    assert listed["worker"][199] == f"mnist-worker-199.{HOST}"


def test_another_cluster_gets_another_config_map_and_the_old_one_stays_for_pods_that_restart_in_place() -> (
    None
):
    first = created(look(LARGE), "ConfigMap")
    grown = job(chief(), workers(201), evaluator())
    children = frozenset({("ConfigMap", first[0]), ("Service", "mnist")})
    decision = look(grown, status=begun(LARGE), children=children)
    assert created(decision, "ConfigMap") != first
    assert [a for a in decision.actions if a.kind == "ConfigMap"][1:] == []  # type: ignore[union-attr]


def test_elastic_jobs_need_no_config_map() -> None:
    assert created(look(job(chief(), workers(200), dynamic_workers=True)), "ConfigMap") == []


CLASSIC = [
    "python",
    "train.py",
    "--ps=$(PS_HOSTS)",
    "--workers=$(WORKER_HOSTS)",
    "$(JOB_NAME)",
    "$(TASK_INDEX)",
]


def test_the_classic_variables_are_given_to_programs_that_mention_them() -> None:
    decision = look(job(role("Worker", 2, command=CLASSIC), servers(1)))
    given = env(decision, "worker-1")
    given.pop("TF_CONFIG")
    assert given == {
        "PS_HOSTS": f"mnist-ps-0.{HOST}",
        "WORKER_HOSTS": f"mnist-worker-0.{HOST},mnist-worker-1.{HOST}",
        "JOB_NAME": "worker",
        "TASK_INDEX": "1",
    }
    assert list(env(decision, "ps-0")) == ["TF_CONFIG"], "which does not mention them"


def test_only_the_mentioned_classic_variable_is_given() -> None:
    decision = look(job(role("Worker", 2, args=["--index", "$(TASK_INDEX)"])))
    assert list(env(decision, "worker-0")) == ["TASK_INDEX", "TF_CONFIG"]


def test_classic_variables_stand_before_the_environment_that_refers_to_them() -> None:
    """The kubelet expands $(NAME) in a value only if NAME stands before it."""
    own = [{"name": "SERVERS", "value": "$(PS_HOSTS)"}]
    decision = look(job(role("Worker", 1, env=own), servers(1)))
    assert list(env(decision, "worker-0")) == ["PS_HOSTS", "SERVERS", "TF_CONFIG"]


def test_a_classic_variable_of_the_users_own_is_kept_alone() -> None:
    own = [{"name": "PS_HOSTS", "value": "elsewhere:1"}]
    decision = look(job(role("Worker", 1, env=own, command=["run", "$(PS_HOSTS)"]), servers(1)))
    assert trainer(decision, "worker-0")["env"][:-1] == own


def test_the_cluster_is_remembered_as_it_was_at_the_first_pass() -> None:
    asked = job(workers(2))
    status = begun(asked, *pods("worker-0", "worker-1"), site=Site(services="per-replica", domain="corp"))
    decision = look(asked, pod("worker-0"), status=status, site=Site(dialect="kubeflow"))
    assert json.loads(env(decision, "worker-1")["TF_CONFIG"])["cluster"] == {
        "worker": ["mnist-worker-0.lab.svc.corp:2222", "mnist-worker-1.lab.svc.corp:2222"]
    }
    assert decision.status.cluster == status.cluster


def test_the_operators_dialect_is_remembered_too() -> None:
    asked = job(chief(), evaluator())
    status = begun(asked, pod("chief-0"), site=Site(dialect="kubeflow"))
    decision = look(asked, pod("chief-0"), status=status)
    assert "evaluator" in json.loads(env(decision, "evaluator-0")["TF_CONFIG"])["cluster"]
    assert status.cluster is not None
    assert status.cluster.dialect == "kubeflow"


def test_a_job_may_choose_its_services_against_the_operator() -> None:
    assert created(look(job(workers(2), services="per-replica")), "Service") == [
        "mnist-worker-0",
        "mnist-worker-1",
    ]
    shared = look(job(workers(2), services="shared"), site=Site(services="per-replica"))
    assert created(shared, "Service") == ["mnist"]


THEIRS = frozenset({("Service", "mnist-master-0"), ("Service", "mnist-worker-0")})


def test_a_job_that_another_operator_began_goes_on_in_that_operators_way() -> None:
    """Its peers know `master` at the old addresses: a restarted pod must say the same."""
    asked = job(master(), workers(1))
    decision = look(asked, pod("master-0"), children=THEIRS)
    assert env(decision, "worker-0")["TF_CONFIG"] == (
        f'{{"cluster":{{"master":["mnist-master-0.{OLD}"],"worker":["mnist-worker-0.{OLD}"]}},'
        '"task":{"type":"worker","index":0},"environment":"cloud"}'
    )


def test_a_job_of_our_own_whose_first_status_was_lost_keeps_its_dialect() -> None:
    asked, site = job(master(), workers(1)), Site(services="per-replica")
    decision = look(asked, pod("master-0"), children=THEIRS, site=site)
    assert list(json.loads(env(decision, "worker-0")["TF_CONFIG"])["cluster"]) == ["chief", "worker"]


def test_an_alpha_job_that_another_operator_began_keeps_its_old_dialect() -> None:
    decision = look(job(master(), workers(1), evaluator(), dialect="tf1"), children=THEIRS)
    assert list(json.loads(env(decision, "worker-0")["TF_CONFIG"])["cluster"]) == ["master", "worker"]


SERVER = "print('the server')"


def test_a_default_server_runs_the_platforms_script_if_there_is_one() -> None:
    asked = job(master(), workers(1), replace(servers(2), is_default_server=True), dialect="tf1")
    decision = look(asked, site=Site(server_script=SERVER))
    spec = f"master|mnist-master-0.{HOST},ps|mnist-ps-0.{HOST};mnist-ps-1.{HOST},worker|mnist-worker-0.{HOST}"
    identity = ["--cluster_spec", spec, "--job_name", "ps", "--task_id", "1"]
    assert trainer(decision, "ps-1")["command"] == ["python", "-c", SERVER, *identity]
    assert "command" not in trainer(decision, "worker-0")


def test_a_default_server_without_a_script_of_the_platforms_keeps_its_own() -> None:
    ours = replace(role(PS, 1, command=["serve"]), is_default_server=True)
    assert trainer(look(job(role(MASTER), ours)), "ps-0")["command"] == ["serve"]
