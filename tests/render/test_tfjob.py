"""The TFJob and the objects beside it."""

import base64
from pathlib import Path

from tfyard import formats

from .calling import JOBS, named, of_kind, tfyard


def test_the_tfjob_that_is_rendered_is_the_job_that_was_written() -> None:
    document = named(tfyard("render", JOBS / "mnist.yaml").objects, "TFJob", "mnist")
    job = formats.load(document)
    assert [(role.name, role.replicas, role.restart) for role in job.roles] == [
        ("Chief", 1, "Never"),
        ("Worker", 4, "ExitCode"),
        ("PS", 2, "OnFailure"),
        ("Evaluator", 1, "Never"),
    ]
    assert (job.run_policy.deadline, job.run_policy.backoff_limit, job.run_policy.ttl) == (7200, 3, 86_400)
    assert job.run_policy.evaluator_grace == 600


def test_everything_a_job_needs_comes_before_it() -> None:
    kinds = [o["kind"] for o in tfyard("render", JOBS / "mnist.yaml", "--create-namespace").objects]
    assert kinds == ["Namespace", "PersistentVolumeClaim", "ConfigMap", "TFJob", "Deployment", "Service"]


def test_what_a_tfjob_does_not_support_is_reported_and_what_is_rendered_beside_it_is_not() -> None:
    pod = "{spec: {containers: [{name: tensorflow, image: x}]}}"
    text = f"""\
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {{name: a}}
spec:
  terminationPolicy: {{chief: {{replicaName: WORKER, replicaIndex: 1}}}}
  tensorboard: {{logDir: /out}}
  replicaSpecs: [{{tfReplicaType: WORKER, replicas: 2, template: {pod}}}]
"""
    done = tfyard("render", "-", text=text)
    assert "not in tfjob objects: terminationPolicy: the job ended with worker-1" in done.err
    assert "tensorboard" not in done.err
    assert tfyard("render", JOBS / "mnist.yaml").err == ""


def test_nfs_by_claim_binds_the_claim_to_its_own_volume() -> None:
    objects = tfyard("render", JOBS / "mnist.yaml", "--nfs-claims").objects
    (volume,) = of_kind(objects, "PersistentVolume")
    claim = named(objects, "PersistentVolumeClaim", "mnist-data")
    assert volume["spec"]["nfs"] == {"server": "10.0.0.5", "path": "/exports/mnist"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert claim["spec"]["storageClassName"] == volume["spec"]["storageClassName"] == ""
    assert "nfs" not in str(named(objects, "TFJob", "mnist"))


TWO_NAMED_DATA = """\
name: mnist
image: x
run: [python, train.py]
chief: {volumes: {data: {nfs: "10.0.0.1:/a", at: /a}}}
worker: {volumes: {data: {nfs: "10.0.0.2:/b", at: /b}, data-2: {nfs: "10.0.0.3:/c", at: /c}}}
ps: {volumes: {data: {nfs: "10.0.0.1:/a", at: /a}}}
"""


def test_two_directories_of_one_name_are_two_claims_and_one_that_two_roles_mount_is_one() -> None:
    objects = tfyard("render", "-", "--nfs-claims", text=TWO_NAMED_DATA).objects
    servers = {
        o["metadata"]["name"]: o["spec"]["nfs"]["server"] for o in of_kind(objects, "PersistentVolume")
    }
    specs = named(objects, "TFJob", "mnist")["spec"]["tfReplicaSpecs"]
    by_role = {
        role: [
            servers[f"default-{volume['persistentVolumeClaim']['claimName']}"]
            for volume in spec["template"]["spec"]["volumes"]
        ]
        for role, spec in specs.items()
    }
    assert by_role == {"Chief": ["10.0.0.1"], "Worker": ["10.0.0.2", "10.0.0.3"], "PS": ["10.0.0.1"]}
    assert len(servers) == 3


def test_a_claim_that_the_file_itself_asks_for_is_not_taken_for_nfs() -> None:
    text = """\
name: mnist
image: x
volumes: {data: {nfs: "10.0.0.1:/a", at: /a}, out: {claim: mnist-data, size: 1Gi, at: /out}}
"""
    objects = tfyard("render", "-", "--nfs-claims", text=text).objects
    names = [claim["metadata"]["name"] for claim in of_kind(objects, "PersistentVolumeClaim")]
    assert sorted(names) == ["mnist-data", "mnist-data-2"]


def test_a_secret_is_written_from_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"abc\n")
    done = tfyard("render", JOBS / "mnist.yaml", "--secret", f"registry/token={tmp_path / 'token'}")
    (secret,) = of_kind(done.objects, "Secret")
    assert base64.b64decode(secret["data"]["token"]) == b"abc\n"
    assert secret["metadata"] == {"name": "registry", "namespace": "training"}


def test_a_job_without_a_namespace_leaves_it_to_kubectl_for_all_its_objects() -> None:
    objects = tfyard("render", JOBS / "alpha.yaml").objects
    assert {o["metadata"].get("namespace") for o in objects} == {None}


def test_another_namespace_moves_everything_that_has_one() -> None:
    for form in ("tfjob", "plain", "legacy"):
        objects = tfyard("render", JOBS / "mnist.yaml", "--as", form, "-n", "elsewhere").objects
        assert {o["metadata"].get("namespace") for o in objects} == {"elsewhere"}
    assert "must be lower-case" in tfyard("render", JOBS / "mnist.yaml", "-n", "Else_Where").err


def test_an_alpha_job_gets_the_tensorboard_that_v1_has_no_field_for() -> None:
    objects = tfyard("render", JOBS / "alpha.yaml").objects
    board = named(objects, "Deployment", "alpha-tensorboard")["spec"]["template"]["spec"]
    assert board["containers"][0]["command"][3:6] == ["tensorboard", "--logdir", "/tmp/tensorflow"]
    assert named(objects, "Service", "alpha-tensorboard")["spec"]["type"] == "LoadBalancer"


def test_other_documents_of_the_file_pass_through(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\nname: a\nimage: x\nrun: [train]\n"
    (tmp_path / "all.yaml").write_text(text)
    assert [o["kind"] for o in tfyard("render", tmp_path / "all.yaml").objects] == ["Secret", "TFJob"]


def test_comments_say_where_things_came_from() -> None:
    text = tfyard("render", JOBS / "mnist.yaml", "--explain").out
    assert "# The 3 files of `code: packed`, as one archive" in text
    assert "    # The role `worker`: 4 tasks.\n    Worker:\n" in text
    assert "# From `tensorboard: /out/logs`." in text
