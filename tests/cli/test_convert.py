from pathlib import Path

import pytest

from tests.cli.running import DATA, tfyard
from tests.formats.samples import EVERY
from tfyard import formats


@pytest.mark.parametrize("version", ["v1", "jobfile"])
def test_what_is_converted_is_valid_and_converts_to_itself(version: str) -> None:
    first = tfyard("convert", "--to", version, DATA / "jobfiles/every-word.yaml")
    second = tfyard("convert", "--to", version, "-", stdin=first.out.encode())
    assert (first.code, second.code) == (0, 0)
    bodies = [
        [line for line in done.out.splitlines() if not line.startswith("#")] for done in (first, second)
    ]
    assert bodies[0] == bodies[1]


def test_a_version_that_clusters_do_not_serve_by_default_is_told() -> None:
    done = tfyard("convert", DATA / "seeds/004-example-tfjob.yaml")
    assert done.code == 0
    assert "note: tensorflow.org/v1alpha1 is not served by default" in done.err
    assert "note:" not in tfyard("convert", DATA / "seeds/001-example-tfjob.yaml").err


def test_the_old_tfjob_of_the_labs_as_v1() -> None:
    done = tfyard("convert", DATA / "seeds/004-example-tfjob.yaml")
    assert done.out == (
        "apiVersion: kubeflow.org/v1\n"
        "kind: TFJob\n"
        "metadata:\n"
        "  name: example-tfjob\n"
        "  annotations:\n"
        "    tfyard.dev/dialect: tf1\n"
        "spec:\n"
        "  tfReplicaSpecs:\n"
        "    Master:\n"
        "      replicas: 1\n"
        "      restartPolicy: OnFailure\n"
        "      template:\n"
        "        spec:\n"
        "          containers:\n"
        "          - image: wbuchwalter/sample\n"
        "            name: tensorflow\n"
        "            resources:\n"
        "              limits:\n"
        "                nvidia.com/gpu: 1\n"
        "          restartPolicy: OnFailure\n"
    )


def test_a_manifest_as_a_job_file_is_as_short_as_by_hand() -> None:
    done = tfyard("convert", DATA / "manifests/v1-dist-mnist.yaml", "--to", "jobfile")
    assert done.out == (
        "# yaml-language-server: $schema=.tfyard/jobfile.json\n"
        "name: dist-mnist-for-e2e-test\n"
        "namespace: kubeflow\n"
        "image: example/tf-dist-mnist-test:latest\n"
        "chief: 1\n"
        "worker: 2\n"
        "ps: 1\n"
        "clean: none\n"
    )


def test_a_job_file_as_v1_says_what_it_could_not_carry() -> None:
    done = tfyard("convert", DATA / "jobfiles/mnist.yaml")
    assert [line for line in done.out.splitlines() if line.startswith("#")] == [
        "# not carried over: tensorboard (/out/logs): `tfyard render` writes it as a manifest of its own",
        "# not carried over: code (.): `tfyard render` ships it with the job",
    ]


def test_several_jobs_stay_several_and_other_kinds_are_named(tmp_path: Path) -> None:
    text = "\n---\n".join(path.read_text() for path in EVERY[:3]) + "\n---\nkind: Service\napiVersion: v1\n"
    done = tfyard("convert", "-", stdin=text.encode())
    assert (done.code, len(formats.read(done.out))) == (0, 3)
    passed_over = "<stdin>: passed over: this Service is not part of the job; keep it if you need it\n"
    assert done.err.endswith(passed_over)


def test_a_file_is_written_and_a_job_file_gets_its_schema_beside_it(tmp_path: Path) -> None:
    done = tfyard(
        "convert", DATA / "jobfiles/smallest.yaml", "--to", "jobfile", "-o", "new.yaml", cwd=tmp_path
    )
    assert (done.code, done.out) == (0, "")
    assert tfyard("validate", "new.yaml", cwd=tmp_path).code == 0
    assert (tmp_path / ".tfyard" / "jobfile.json").exists()


@pytest.mark.parametrize("output", ["job.yaml", "./job.yaml", "link.yaml"])
def test_what_is_read_is_overwritten_only_when_told_to(output: str, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text("name: a\nimage: b\n")
    (tmp_path / "link.yaml").symlink_to(job)
    done = tfyard("convert", "job.yaml", "-o", output, cwd=tmp_path)
    assert done.err == f"tfyard: -o {output} is the file that is read; --force overwrites it\n"
    assert (done.code, job.read_text()) == (2, "name: a\nimage: b\n")
    assert tfyard("convert", "job.yaml", "-o", output, "--force", cwd=tmp_path).code == 0
    assert "kind: TFJob" in job.read_text()


def test_umlauts_survive_a_terminal_without_utf_8() -> None:
    text = 'name: a\nimage: b\nenv: {A: "grüße"}\n'
    done = tfyard("convert", "-", stdin=text.encode(), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.code, "grüße" in done.out) == (0, True)


def test_an_invalid_job_is_not_converted_and_nothing_is_written(tmp_path: Path) -> None:
    done = tfyard("convert", "-", "-o", "new.yaml", cwd=tmp_path, stdin=b"name: a\nwroker: 1\n")
    assert (done.code, done.out, list(tmp_path.iterdir())) == (1, "", [])
    assert "<stdin>:2:1: error: wroker" in done.err


def test_broken_yaml_is_shown_with_its_name_and_line() -> None:
    done = tfyard("convert", "-", stdin=b'name: a\nimage: "b\n')
    assert done.code == 1
    assert done.err.startswith("<stdin>:")


@pytest.mark.parametrize(
    "args",
    [["no-such.yaml"], ["-"], ["-", "--to", "v2"], [], [DATA / "jobfiles/smallest.yaml", "-o", "no/x"]],
)
def test_a_usage_error_exits_with_2(args: list[str], tmp_path: Path) -> None:
    assert tfyard("convert", *args, cwd=tmp_path, stdin=b"kind: Service\n").code == 2


def test_a_cluster_without_its_parameter_server_is_not_converted_unless_told_to(tmp_path: Path) -> None:
    seed = DATA.parent / "render/seeds/003"
    for name in ("worker.yaml", "ps-srv.yaml"):
        lines = (seed / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(line for line in lines if "nodeName: *" not in line))
    done = tfyard("convert", "worker.yaml", "ps-srv.yaml", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    missing = "not in the input: ps 0 (tensorflow-ps-service.default.svc.cluster.local:2222)\n"
    assert missing in done.err
    assert "fix: add them: `tfyard convert` takes several files; with --allow-missing" in done.err
    done = tfyard("convert", "worker.yaml", "ps-srv.yaml", "--allow-missing", cwd=tmp_path)
    assert (done.code, list(formats.read(done.out)[0].data["spec"]["tfReplicaSpecs"])) == (0, ["Worker"])
    assert "# changed: tasks that are not in the input are left out: ps 0 (tensorflow-ps" in done.out


def test_the_plain_job_of_the_labs_becomes_a_tfjob() -> None:
    text = (DATA.parent / "golden/seed_004/job.yaml").read_text()
    done = tfyard("convert", "-", stdin=text.encode())
    assert done.code == 0
    (document,) = formats.read(done.out)
    job = formats.load(document)
    assert (job.name, [(role.name, role.restart) for role in job.roles]) == (
        "example-job",
        [("Worker", "OnFailure")],
    )
    (container,) = job.roles[0].template["spec"]["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert done.err == "tfyard: changed: Job example-job is taken for a worker: nothing in it names a role\n"


def test_a_job_file_says_which_restart_policy_it_left_out() -> None:
    done = tfyard("convert", DATA / "seeds/001-module6-ex1-gpu.yaml", "--to", "jobfile")
    assert (
        "# not carried over: restartPolicy OnFailure in the pod template of Master: it has no effect"
        in done.out
    )


def test_a_job_with_workers_is_told_that_their_failures_count_now() -> None:
    lost = "a failed worker fails the job"
    job = {"apiVersion": "tensorflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": "a"}}
    pod = {"template": {"spec": {"containers": [{"name": "tensorflow", "image": "a"}]}}}
    roles = [{"tfReplicaType": "MASTER", **pod}, {"tfReplicaType": "WORKER", **pod}]
    for count in (1, 2):
        text = formats.to_yaml({**job, "spec": {"replicaSpecs": roles[:count]}})
        for form in ("v1", "jobfile"):
            assert (lost in tfyard("convert", "-", "--to", form, stdin=text.encode()).out) is (count == 2)
