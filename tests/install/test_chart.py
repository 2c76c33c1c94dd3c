"""The chart as the real helm renders it: the same objects as `tfyard install`."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import ROOT
from tests.controller.test_permissions import asked, granted
from tests.helm import CHART, Helm, HelmFailed
from tfyard import __version__
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import manifests, permissions, roles
from tfyard.install.settings import NAME, REPOSITORY, Settings
from tfyard.model import Manifest
from tfyard.model.permission import Permission

OF_HELM = (
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/version",
    "helm.sh/chart",
    "helm.sh/resource-policy",
)
"""Labels and annotations that only Helm's objects have."""
Key = tuple[str, str, str]


def render(helm: Helm, *options: str) -> list[Manifest]:
    """The installed objects, without hooks such as the test's pod."""
    text = helm("template", "tf-job", str(CHART), "--namespace=tfyard", *options)
    objects = [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
    return [each for each in objects if "helm.sh/hook" not in (each["metadata"].get("annotations") or {})]


def by_name(manifests: list[Manifest]) -> dict[Key, Manifest]:
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): _plain(each)
        for each in manifests
    }


def _plain(manifest: Manifest) -> Manifest:
    metadata = {
        field: {key: text for key, text in value.items() if key not in OF_HELM}
        if isinstance(value, dict)
        else value
        for field, value in manifest["metadata"].items()
    }
    return {**manifest, "metadata": {field: value for field, value in metadata.items() if value != {}}}


def the(kind: str, manifests: list[Manifest]) -> Manifest:
    (only,) = [each for each in manifests if each["kind"] == kind]
    return only


def container(manifests: list[Manifest]) -> Manifest:
    operator: Manifest = the("Deployment", manifests)["spec"]["template"]["spec"]["containers"][0]
    return operator


def test_lint_finds_nothing(helm: Helm) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("", {}),
        ("cloud=azure", {"cloud": "azure"}),
        ("cloud=gke", {"cloud": "gke"}),
        ("cloud=gke,crds.versions={v1alpha1}", {"cloud": "gke", "versions": ("kubeflow.org/v1alpha1",)}),
        ("replicaCount=2,namespaces={a,b}", {"replicas": 2, "namespaces": ("a", "b")}),
        ("crds.versions={all}", {"versions": tuple(VERSIONS)}),
        ("rbac.readLogs=true,namespaces={a}", {"read_logs": True, "namespaces": ("a",)}),
        ("image=registry.example/mine:2", {"image": "registry.example/mine:2"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_chart_installs_what_tfyard_installs(helm: Helm, options: str, settings: dict[str, Any]) -> None:
    chosen = Settings(**{"image": f"{REPOSITORY}:{__version__}", **settings})
    plain = json.loads(json.dumps(manifests.objects(chosen)))
    assert by_name(render(helm, "--set", options)) == by_name(plain)


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ("", [permissions.NODES]),
        ("namespaces={a}", []),
        ("compat=kubeflow", [permissions.NODES]),
        ("rbac.readLogs=true", [permissions.NODES, permissions.POD_LOGS]),
        *(
            (f"gangScheduler={name}", [permissions.NODES, *needed])
            for name, needed in roles.GANG_SCHEDULERS.items()
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_option_grants_what_the_operator_then_asks_for_and_no_verb_more(
    helm: Helm, options: str, more: list[Permission]
) -> None:
    of_jobs = [each for group in roles.GROUPS for each in permissions.of_jobs(group)]
    finalizers = [permissions.of_finalizers(group) for group in roles.GROUPS]
    always = [
        *of_jobs,
        *finalizers,
        *permissions.of_children(),
        permissions.EVENTS,
        permissions.POD_EVENTS,
        permissions.LEASE,
    ]
    objects = [each for each in render(helm, "--set", options) if each["metadata"]["name"].startswith(NAME)]
    assert granted(objects) == asked(*always, *more)


def test_values_of_2017_work(helm: Helm) -> None:
    then = render(helm, "--set", "cloud=azure,rbac.install=true,image=registry.example/mine:2")
    now = render(
        helm, "--set", "cloud=azure", "--set-json", 'image={"repository":"registry.example/mine","tag":"2"}'
    )
    assert then == now
    without = render(helm, "--set", "rbac.install=false")
    people = {roles.VIEW, roles.EDIT, roles.SWEEP_ROLE, roles.SWEEP_READER}
    assert {each["metadata"]["name"] for each in without if "ole" in each["kind"]} == people


@pytest.mark.parametrize(("cloud", "groups"), [("azure", ["kubeflow", "tensorflow"]), ("", ["kubeflow"])])
def test_with_a_cloud_the_tfjobs_of_its_documents_are_served(
    helm: Helm, cloud: str, groups: list[str]
) -> None:
    definitions = [each for each in render(helm, "--set", f"cloud={cloud}") if "ResourceDef" in each["kind"]]
    assert [each["spec"]["group"] for each in definitions] == [f"{name}.org" for name in groups]


def test_a_digest_wins_over_the_tag(helm: Helm) -> None:
    digest = f"sha256:{'0' * 64}"
    objects = render(helm, "--set", f"image.registry=registry.example,image.digest={digest},image.tag=v9")
    assert container(objects)["image"] == f"registry.example/tfyard/operator@{digest}"


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("cloud=aws", "'/cloud': value must be one of '', 'azure', 'gke'"),
        ("replicaCount=two", "'/replicaCount': got string, want integer"),
        ("replicas=2", "additional properties 'replicas' not allowed"),
        ("crds.versions={v3}", "'/crds/versions/0': value must be one of"),
        ("image.digest=abc", "'/image"),
        ("namespaces=team-a", "'/namespaces': got string, want array"),
        ("page.namespaces={Team}", "'/page/namespaces/0'"),
        ("page.path=tfyard", "'/page/path'"),
    ],
)
def test_wrong_values_are_refused_with_their_place(helm: Helm, option: str, place: str) -> None:
    with pytest.raises(HelmFailed, match="values don't meet the specifications") as refused:
        render(helm, "--set", option)
    assert place in str(refused.value)


def test_every_value_that_adds_something_reaches_the_objects(helm: Helm) -> None:
    values = {
        "imagePullSecrets": [{"name": "mine"}],
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {}},
        "podLabels": {"team": "ml"},
        "podAnnotations": {"seen": "yes"},
        "commonLabels": {"owner": "platform"},
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example"}],
        "extraArgs": ["--kueue-pod-groups"],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
        "logFormat": "text",
        "serviceAccount": {"name": "mine", "annotations": {"role": "arn"}},
        "config": {"existing": "own-config"},
        "metrics": {
            "port": 9090,
            "serviceMonitor": {"enabled": True},
            "prometheusRule": {"enabled": True},
            "dashboard": {"enabled": True},
        },
        "networkPolicy": {"enabled": True},
    }
    options = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
    objects = render(helm, *options)
    pod = the("Deployment", objects)["spec"]["template"]
    spec = pod["spec"]
    for name in ("imagePullSecrets", "priorityClassName", "nodeSelector", "tolerations", "affinity"):
        assert spec[name] == values[name]
    assert pod["metadata"]["labels"]["team"] == "ml"
    assert pod["metadata"]["annotations"] == {"seen": "yes"}
    assert container(objects)["args"] == [
        "operator",
        "--bind=:9090",
        "--config=/etc/config/controller_config_file.yaml",
        "--log=text",
        "--kueue-pod-groups",
    ]
    assert {"name": "config", "configMap": {"name": "own-config"}} in spec["volumes"]
    assert spec["serviceAccountName"] == the("ServiceAccount", objects)["metadata"]["name"] == "mine"
    assert {"ServiceMonitor", "PrometheusRule", "NetworkPolicy", "ConfigMap"} <= {
        each["kind"] for each in objects
    }
    owned = [each for each in objects if each["kind"] != "CustomResourceDefinition"]
    assert all(each["metadata"]["labels"]["owner"] == "platform" for each in owned)


def test_the_page_may_do_nothing_itself_and_has_only_the_ca_of_the_cluster(helm: Helm) -> None:
    without = by_name(render(helm))
    values = {
        "enabled": True,
        "hosts": ["jobs.example"],
        "path": "/tools/tfyard",
        "trustedProxies": ["10.0.0.0/8"],
        "namespaces": ["a", "b"],
        "port": 8081,
        "from": [{"namespaceSelector": {}}],
    }
    objects = by_name(
        render(helm, f"--set-json=page={json.dumps(values)}", "--set=networkPolicy.enabled=true")
    )
    name, namespace = f"{NAME}-page", "tfyard"
    added = {key for key in objects.keys() - without.keys() if key[2] == name}
    kinds = ("Deployment", "NetworkPolicy", "Service", "ServiceAccount")
    assert sorted(added) == [(kind, namespace, name) for kind in kinds]
    bindings = [each for (kind, *_), each in objects.items() if kind.endswith("Binding")]
    assert not [each for each in bindings for who in each["subjects"] if who["name"] == name]
    page = objects["Deployment", namespace, name]["spec"]
    spec = page["template"]["spec"]
    assert (page["replicas"], page["strategy"]) == (1, {"type": "Recreate"})
    assert spec["automountServiceAccountToken"] is False
    files = [{"key": "ca.crt", "path": "ca.crt"}]
    assert spec["volumes"] == [{"name": "ca", "configMap": {"name": "kube-root-ca.crt", "items": files}}]
    assert spec["containers"][0]["args"] == [
        "dashboard",
        "--in-cluster",
        "--bind=:8081",
        *(f"--allow-host={each}" for each in (name, f"{name}.tfyard", f"{name}.tfyard.svc", "jobs.example")),
        "--path=/tools/tfyard",
        "--trust-proxy=10.0.0.0/8",
        "--namespace=a,b",
    ]
    (entry,) = objects["NetworkPolicy", namespace, name]["spec"]["ingress"]
    assert entry == {"ports": [{"port": "http", "protocol": "TCP"}], "from": [{"namespaceSelector": {}}]}
    selectors = [
        objects[kind, namespace, other]["spec"]
        for kind, other in (("Service", name), ("Service", f"{NAME}-metrics"))
    ]
    assert selectors[0]["selector"] != selectors[1]["selector"]


@pytest.mark.processes
def test_the_chart_is_packed_into_one_file(helm: Helm, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.helm", "package", str(CHART), "--destination", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (packed,) = tmp_path.iterdir()
    assert packed.name == f"tfyard-{__version__}.tgz"
    assert yaml.safe_load(helm("show", "chart", str(packed)))["appVersion"] == __version__
