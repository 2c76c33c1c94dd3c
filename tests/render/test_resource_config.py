"""Seed 002: a config with resources, and a cluster that a notebook drives."""

import json
import shutil
from pathlib import Path

import pytest

from . import kubelet
from .calling import COMPAT, HERE, Manifest, documents, named, of_kind, python, tfyard

SEED_CONFIG = """\
imports:
    - {name: tensorflow-cluster, path: tensorflow-cluster.jinja}
    - {name: jupyter-service, path: jupyter-service.jinja}
resources:
  - type: tensorflow-cluster
    properties:
        image: gcr.io/oscon-tf-workshop/tf-worker
        namespace: tensorflow
        jobs: [{name: ps, num_tasks: 2}, {name: workers, num_tasks: 3}]
  - type: jupyter-service
    properties: {namespace: tensorflow, password: 'a good password'}
"""


def render(tmp_path: Path, text: str, *options: str) -> "tuple[int, str, str]":
    (tmp_path / "my-config.yaml").write_text(text)
    return tfyard("render", "my-config.yaml", *options, cwd=tmp_path)


def test_the_seeds_command_line_works_word_for_word(tmp_path: Path) -> None:
    shutil.copytree(COMPAT, tmp_path, dirs_exist_ok=True)
    (tmp_path / "my-config.yaml").write_text(SEED_CONFIG)
    done = python(*["render.py", "--config", "my-config.yaml", "--out", "rendered.yaml"], cwd=tmp_path)
    assert (done.code, done.out) == (0, "")
    objects = documents((tmp_path / "rendered.yaml").read_text())
    tasks = ["ps-0", "ps-1", "workers-0", "workers-1", "workers-2"]
    assert [o["metadata"]["name"] for o in of_kind(objects, "Service")] == [*tasks, "jupyter"]
    assert {o["metadata"]["namespace"] for o in objects} == {"tensorflow"}


def test_without_a_name_the_output_stands_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "my-config.yaml").write_text(SEED_CONFIG)
    assert python(COMPAT / "render.py", "--config", "my-config.yaml", cwd=tmp_path).code == 0
    assert (tmp_path / "my-config.yaml.rendered.yaml").exists()


def test_the_seeds_files_are_where_the_seed_says() -> None:
    assert (COMPAT / "templates" / "config.yaml").exists()
    assert (COMPAT / "requirements.txt").exists()
    assert tfyard("render", COMPAT / "templates" / "config.yaml").code == 0


def test_each_task_has_the_documented_address(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SEED_CONFIG)
    objects = tfyard("render", tmp_path / "c.yaml").objects
    cluster = json.loads(named(objects, "ConfigMap", "tensorflow-cluster-config")["data"]["clusterconfig"])
    assert cluster == {
        "ps": [f"ps-{i}.tensorflow.svc.cluster.local:8080" for i in range(2)],
        "workers": [f"workers-{i}.tensorflow.svc.cluster.local:8080" for i in range(3)],
    }
    selector = named(objects, "Service", "ps-1")["spec"]["selector"]
    assert selector == {"statefulset.kubernetes.io/pod-name": "ps-1"}
    assert named(objects, "StatefulSet", "ps")["spec"]["replicas"] == 2


def test_an_unavailable_image_is_replaced_with_a_message_and_any_other_is_kept(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SEED_CONFIG)
    done = tfyard("render", tmp_path / "c.yaml")
    assert _image(done.objects) == "tensorflow/tensorflow:2.21.0"
    assert "gcr.io/oscon-tf-workshop/tf-worker is no longer available" in done.err
    (tmp_path / "c.yaml").write_text(SEED_CONFIG.replace("gcr.io/oscon-tf-workshop/tf-worker", "mine:1"))
    assert _image(tfyard("render", tmp_path / "c.yaml").objects) == "mine:1"


def _image(objects: list[Manifest]) -> str:
    return str(named(objects, "StatefulSet", "ps")["spec"]["template"]["spec"]["containers"][0]["image"])


def test_the_password_is_nowhere_in_the_output_and_the_address_is_explained_for_any_cloud(
    tmp_path: Path,
) -> None:
    (tmp_path / "c.yaml").write_text(SEED_CONFIG)
    done = tfyard("render", tmp_path / "c.yaml", "--explain")
    assert "a good password" not in done.out
    assert "kubectl --namespace tensorflow get service jupyter" in done.err
    assert "port-forward service/jupyter 8888:8888" in done.err
    assert named(done.objects, "Service", "jupyter")["spec"]["type"] == "LoadBalancer"


def test_the_later_forms_are_read_too() -> None:
    last = tfyard("render", HERE / "configs" / "map.yaml").objects
    assert {s["metadata"]["name"]: s["spec"]["replicas"] for s in of_kind(last, "StatefulSet")} == {
        "ps": 8,
        "worker": 16,
    }
    (volume,) = of_kind(last, "PersistentVolume")
    assert volume["spec"]["nfs"] == {"server": "10.0.0.5", "path": "/"}
    between = tfyard("render", HERE / "configs" / "numbers.yaml").objects
    server = named(between, "Deployment", "jupyter")["spec"]["template"]["spec"]["containers"][0]
    secret = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "jupyter", "key": "password"}}}
    assert secret in server["env"]
    assert of_kind(between, "Secret") == []


def test_templates_of_the_user_are_filled_in_the_order_of_the_config() -> None:
    objects = tfyard("render", HERE / "configs" / "own.yaml").objects
    assert [o["metadata"]["name"] for o in objects[:2]] == ["scratch-0", "scratch-1"]
    assert objects[2]["kind"] == "ConfigMap"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resources: [{type: tensorflow-clutser}]", "did you mean tensorflow-cluster?"),
        ("resources: [{type: tensorflow-cluster, propertys: {}}]", "did you mean properties?"),
        ("resources: [{type: tensorflow-cluster}]", "resources[0].properties.jobs: must be given"),
        ("resources: [{type: jupyter-service}]", "resources[0].properties.password: must be given"),
        ("resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 0}}}]", "a number from 1 to 10000"),
        ("resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 1000000000}}}]", "from 1 to 10000"),
        ("resources: [{type: tensorflow-cluster, properties: {jobs: {ps: two}}}]", "must be a whole number"),
        ("resources: [{type: tensorflow-cluster, properties: {jobs: {Ps_1: 1}}}]", "must be lower-case"),
        ("resources: [{type: tensorflow-cluster, properties: {jobs: {" + "p" * 70 + ": 1}}}]", "too long"),
        ("imports: [{name: a, path: ../a.jinja}]\nresources: [{type: a}]", "outside of the config's folder"),
        ("imports: [{name: a, path: a.jinja}]\nresources: [{type: a}]", "template not found"),
        (
            "resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 9999}}}]",
            "tasks fit with these names",
        ),
        ("resources: 7", "must be a list"),
    ],
)
def test_bad_configs_are_refused_with_place_and_fix(tmp_path: Path, text: str, message: str) -> None:
    code, out, err = render(tmp_path, text)
    assert (code, out) == (1, "")
    assert message in err
    assert err.startswith("my-config.yaml:")


def test_all_problems_of_a_config_come_at_once_and_no_file_is_left_behind(tmp_path: Path) -> None:
    text = "resources:\n- {type: jupyter-service}\n- {type: tensorflow-cluster, properties: {jobz: 1}}\n"
    code, _, err = render(tmp_path, text, "-o", "out.yaml")
    assert code == 1
    assert err.count("error:") == 3
    assert [path.name for path in tmp_path.iterdir()] == ["my-config.yaml"]


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ("password: 12345", "properties.password: must be text"),
        ("jobs: [{name: ps, num_tasks: two}]", "jobs[0].num_tasks: must be a whole number"),
        ("jobs: {ps: 1}, jupyter-config: {password: 1}", "jupyter-config.password: must be text"),
    ],
)
def test_a_value_of_the_wrong_type_is_not_also_reported_as_missing(
    tmp_path: Path, properties: str, message: str
) -> None:
    kind = "jupyter-service" if properties.startswith("password") else "tensorflow-cluster"
    code, _, err = render(tmp_path, f"resources: [{{type: {kind}, properties: {{{properties}}}}}]")
    assert (code, err.count("error:")) == (1, 1)
    assert message in err


def test_validate_names_the_commands_that_read_a_config(tmp_path: Path) -> None:
    (tmp_path / "my-config.yaml").write_text(SEED_CONFIG)
    message = (
        "my-config.yaml: passed over: it is a config with resources; `tfyard render` and `tfyard run` read it"
    )
    assert tfyard("validate", "my-config.yaml", cwd=tmp_path).out.startswith(message)


def test_the_namespace_must_exist_and_is_written_if_asked_for(tmp_path: Path) -> None:
    (tmp_path / "my-config.yaml").write_text(SEED_CONFIG)
    line = [COMPAT / "render.py", "--config", "my-config.yaml", "--out", "out.yaml"]
    way = "kubectl create namespace tensorflow, or give --create-namespace"
    assert f"tfyard: the namespace tensorflow must exist: {way}\n" in python(*line, cwd=tmp_path).err
    done = python(*line, "--create-namespace", cwd=tmp_path)
    assert "must exist" not in done.err
    first, *others = documents((tmp_path / "out.yaml").read_text())
    assert (first["kind"], first["metadata"]) == ("Namespace", {"name": "tensorflow"})
    assert of_kind(others, "Namespace") == []


def test_every_cluster_has_the_default_namespace(tmp_path: Path) -> None:
    text = "resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 1}, summary-pvc: mine}}]"
    code, out, err = render(tmp_path, text, "--create-namespace")
    assert (code, of_kind(documents(out), "Namespace")) == (0, [])
    assert err == "tfyard: the claim mine must exist: it is not in this config\n"


TEMPLATE_OF_2016 = """\
{% set NAMESPACE = properties['namespace'] or 'default' %}
{% for job in properties['jobs'] %}
{% for i in range(0, job['num_tasks']) %}
apiVersion: extensions/v1beta1
kind: Deployment
metadata:
  name: {{ job['name'] }}-{{ i }}
  namespace: {{ NAMESPACE }}
  labels: {port: '{{ job['port'] or 8080 }}', typo: '{{ job['prot'] }}'}
spec:
  template:
    spec:
      containers:
        - args: ["{{ properties['jobs']|string }}"]
---
{% endfor %}
{% endfor %}
{% for name, value in properties['limits'].iteritems() %}
{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ name }}}, data: {value: '{{ value }}'}}
---
{% endfor %}
{% for one in properties['nothing'] %}
{% endfor %}
"""


def test_templates_that_were_written_for_lenient_jinja_and_python_2_work(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text(TEMPLATE_OF_2016)
    text = (
        "imports: [{name: a, path: a.jinja}]\n"
        "resources: [{type: a, properties: {namespace: tf, jobs: [{name: ps, num_tasks: 2}], limits: {c: 1}}}]\n"
    )
    code, out, err = render(tmp_path, text)
    assert code == 0, err
    names = [o["metadata"]["name"] for o in documents(out)]
    assert names == ["ps-0", "ps-1", "c"]
    assert documents(out)[0]["metadata"]["labels"] == {"port": "8080", "typo": ""}
    assert "a.jinja:9:1: warning: template: 'dict object' has no attribute 'prot'" in err
    assert "a.jinja:22:1: warning: template: 'dict object' has no attribute 'nothing'" in err
    assert "no cluster serves extensions/v1beta1 Deployment any more" in err
    assert err.count("warning:") == 3
    assert "the namespace tf must exist" in err


def test_a_template_that_fails_leaves_no_half_file_behind(tmp_path: Path) -> None:
    (tmp_path / "a.jinja").write_text("{{ properties.missing.deeper }}")
    text = "imports: [{name: a, path: a.jinja}]\nresources: [{type: pd, properties: {name: d}}, {type: a}]\n"
    code, _, err = render(tmp_path, text, "-o", "out.yaml")
    assert code == 1
    assert "a.jinja:1:1: error: template: 'dict object' has no attribute 'missing'" in err
    assert not (tmp_path / "out.yaml").exists()


def test_the_servers_environment_is_what_the_script_reads(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(SEED_CONFIG)
    objects = tfyard("render", tmp_path / "c.yaml").objects
    (container,) = named(objects, "StatefulSet", "ps")["spec"]["template"]["spec"]["containers"]
    names = [entry["name"] for entry in container["env"]]
    assert names == ["POD_NAME", "POD_NAMESPACE", "CLUSTER_CONFIG"]
    env = kubelet.environment(objects, {"env": container["env"][2:]}, 0)
    assert list(json.loads(env["CLUSTER_CONFIG"])) == ["ps", "workers"]
