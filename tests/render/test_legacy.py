"""Clusters written by hand in 2016 are read, and written again for today's API."""

from pathlib import Path

import pytest

from tfyard import formats

from .calling import HERE, documents, named, of_kind, tfyard

SEED = HERE / "seeds" / "003"
FIRST = ("ps.yaml", "worker.yaml", "ps-srv.yaml", "worker-srv.yaml")
SECOND = ("work_ps.yaml",)


def without_stars(names: tuple[str, ...], tmp_path: Path) -> list[Path]:
    """The seed's files without the line that is not YAML."""
    for name in names:
        lines = (SEED / name).read_text().splitlines(keepends=True)
        (tmp_path / name).write_text("".join(line for line in lines if "nodeName: *" not in line))
    return [tmp_path / name for name in names]


def test_a_node_name_of_stars_is_an_error_with_place_and_fix() -> None:
    done = tfyard("convert", SEED / "work_ps.yaml", "--to", "jobfile")
    assert done.code == 1
    assert "work_ps.yaml:58:17: error: spec.template.spec.nodeName" in done.err
    assert "fix: quote the value or remove the line" in done.err


def test_errors_of_several_files_are_reported_at_once() -> None:
    done = tfyard("convert", *(SEED / name for name in FIRST), "--to", "jobfile")
    assert "ps.yaml:" in done.err
    assert "worker.yaml:" in done.err


def test_the_first_generation_becomes_a_job_that_fetches_its_code(tmp_path: Path) -> None:
    done = tfyard("convert", *without_stars(FIRST, tmp_path), "--to", "jobfile")
    (words,) = documents(done.out)
    assert words == {
        "name": "tensorflow",
        "code": {"url": "https://codeload.github.com/tobegit3hub/deep_recommend_system/zip/master"},
        "image": "harbor.ail.unisound.com/xuerq/tensorflow:0.11.0",
        "run": "python cancer_classifier.py --ps_hosts=$PS_HOSTS --worker_hosts=$WORKER_HOSTS"
        " --job_name=$JOB_NAME --task_index=$TASK_INDEX",
        "workdir": "/code/distributed",
        "restart": "on-failure",
        "worker": 2,
        "ps": 1,
    }


def test_the_second_generation_keeps_its_volume(tmp_path: Path) -> None:
    done = tfyard("convert", *without_stars(SECOND, tmp_path), "--to", "jobfile")
    (words,) = documents(done.out)
    assert words["volumes"] == {"nfs": {"nfs": "10.10.10.39:/home/xuerq/nfs", "at": "/nfs"}}
    assert words["run"].startswith("cp -r /nfs/deep_recommend_system-master ./;cd deep_recommend")
    assert (words["worker"], words["ps"]) == (2, 1)


def test_the_removed_redirection_is_reported_on_the_terminal_and_in_the_file(tmp_path: Path) -> None:
    done = tfyard("convert", *without_stars(SECOND, tmp_path), "--to", "jobfile")
    assert "redirection `1>log 2>errlog` removed: the output goes to the log" in done.err
    assert "# changed: redirection `1>log 2>errlog`" in done.out


@pytest.mark.parametrize("names", [FIRST, SECOND])
def test_what_is_converted_can_be_rendered_in_every_form_and_run(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    job = tmp_path / "job.yaml"
    assert tfyard("convert", *without_stars(names, tmp_path), "--to", "jobfile", "-o", job).code == 0
    assert formats.check(formats.read(job.read_bytes())[0]).problems == ()
    for form in ("tfjob", "plain", "legacy"):
        assert tfyard("render", job, "--as", form).code == 0


def test_a_cluster_rendered_as_legacy_keeps_its_names(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    tfyard("convert", *without_stars(SECOND, tmp_path), "--to", "jobfile", "-o", job)
    old, new = (
        documents((tmp_path / "work_ps.yaml").read_text()),
        tfyard("render", job, "--as", "legacy").objects,
    )
    for kind in ("ReplicationController", "Service"):
        assert _names(of_kind(new, kind)) == _names(of_kind(old, kind))
    hosts = named(new, "ConfigMap", "tensorflow-cluster-config")["data"]
    assert {key: hosts[key] for key in ("ps", "worker")} == of_kind(old, "ConfigMap")[0]["data"]
    container = named(new, "ReplicationController", "tensorflow-worker1-rc")["spec"]["template"]["spec"][
        "containers"
    ][0]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert list(env)[:2] == ["PS_KEY", "WORKER_KEY"]
    assert (env["PS_HOSTS"], env["JOB_NAME"], env["TASK_INDEX"]) == ("$(PS_KEY)", "worker", "1")
    task = '"task":{"type":"worker","index":1},"environment":"cloud"'
    assert env["TF_CONFIG"] == f'{{"cluster":$(TFYARD_CLUSTER),{task}}}'


def _names(objects: list[dict]) -> set[str]:  # type: ignore[type-arg]
    return {manifest["metadata"]["name"] for manifest in objects}


def test_a_node_is_kept_if_all_tasks_run_on_it_and_reported_if_not(tmp_path: Path) -> None:
    text = (SEED / "work_ps.yaml").read_text()
    (tmp_path / "one.yaml").write_text(text.replace("**********", "node-a"))
    first = documents(tfyard("convert", tmp_path / "one.yaml", "--to", "jobfile").out)[0]
    assert first["node"] == "node-a"
    (tmp_path / "two.yaml").write_text(
        text.replace("**********", "node-a", 2).replace("**********", "node-b")
    )
    second = tfyard("convert", tmp_path / "two.yaml", "--to", "jobfile")
    assert "nodeName of Worker removed: tasks had different nodes; `spread`" in second.err
    (words,) = documents(second.out)
    assert (words["worker"], words["ps"]) == (2, {"count": 1, "node": "node-a"})


def test_tasks_that_differ_are_refused_with_their_place(tmp_path: Path) -> None:
    (path,) = without_stars(SECOND, tmp_path)
    head, _, tail = path.read_text().rpartition("image: harbor.ail.unisound.com/xuerq/tensorflow:0.11.0")
    path.write_text(f"{head}image: other:1{tail}")
    done = tfyard("convert", path, "--to", "jobfile")
    assert done.code == 1
    assert "Worker 1 differs from Worker 0 in more than index and node" in done.err


def test_a_controller_of_several_pods_and_a_task_with_other_code_are_refused(tmp_path: Path) -> None:
    ps, worker, *_ = without_stars(FIRST, tmp_path)
    ps.write_text(ps.read_text().replace("zip/master", "zip/other"))
    done = tfyard("convert", ps, worker, "--to", "jobfile")
    assert (done.code, done.out) == (1, "")
    assert "fetches different code than the other tasks" in done.err
    worker.write_text(worker.read_text().replace("replicas: 1", "replicas: 3", 1))
    done = tfyard("convert", ps, worker, "--to", "jobfile")
    assert "spec.replicas: must be 1: equal pods would all be the same task" in done.err


CONTROLLER = """\
apiVersion: v1
kind: ReplicationController
metadata: {name: tf-worker0-rc, namespace: a}
spec:
  selector: {name: tf}
  template:
    metadata: {labels: {name: tf, role: worker, team: vision}, annotations: {iam: reader}}
    spec:
      containers:
      - name: worker
        image: img
        command: [SHELL, -c]
        args:
        - |
          source env.sh
          cd /code
          python t.py --job_name=worker --task_index=0 --say "two  spaces"
        ports: [{containerPort: 2222}, {containerPort: 8080, name: web}]
"""
SCRIPT = (
    'source env.sh\ncd /code\npython t.py --job_name=$JOB_NAME --task_index=$TASK_INDEX --say "two  spaces"'
)


def test_a_script_keeps_its_lines_its_spaces_and_its_shell() -> None:
    for shell, run in (("/bin/bash", ["/bin/bash", "-c", SCRIPT]), ("sh", SCRIPT)):
        done = tfyard("convert", "-", "--to", "jobfile", text=CONTROLLER.replace("SHELL", shell))
        assert documents(done.out)[0]["run"] == run


def test_code_for_another_interpreter_is_not_taken_for_a_line_of_the_shell() -> None:
    text = CONTROLLER.replace("SHELL", "python").replace("args:\n        - |", "args:\n        - |-")
    (words,) = documents(tfyard("convert", "-", "--to", "jobfile", text=text).out)
    assert words["run"] == [
        "python",
        "-c",
        SCRIPT.replace("$JOB_NAME", "$(JOB_NAME)").replace("$TASK_INDEX", "$(TASK_INDEX)"),
    ]


def test_what_is_removed_from_a_task_is_reported_and_labels_of_the_user_are_kept() -> None:
    other = CONTROLLER.replace("worker", "ps").replace("namespace: a", "namespace: b")
    done = tfyard("convert", "-", text=f"{CONTROLLER}---\n{other}".replace("SHELL", "sh"))
    for sentence in (
        "further ports removed: 8080; a task has one port",
        "namespaces a, b: a job has only one; a is used",
    ):
        assert done.err.count(sentence) == 1
        assert f"# changed: {sentence}" in done.out
    (job,) = done.objects
    for role in job["spec"]["tfReplicaSpecs"].values():
        assert role["template"]["metadata"] == {
            "labels": {"team": "vision"},
            "annotations": {"iam": "reader"},
        }


def test_a_name_that_is_too_long_for_the_services_is_refused() -> None:
    text = f"name: {'a' * 50}\nimage: x\nrun: [train]\nevaluator: 1\nworker: 1\n"
    done = tfyard("render", "-", "--as", "legacy", text=text)
    assert (done.code, done.out) == (1, "")
    assert "use at most 45 letters" in done.err
