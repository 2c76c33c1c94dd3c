"""Seed 000: templates for single and distributed jobs, with the commands of their time."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tfyard.errors import Invalid
from tfyard.model.names import DEFAULT_IMAGE
from tfyard.render import templates

from .calling import COMPAT, documents, named, of_kind, python, tfyard

SHIPPED = Path("src/tfyard/render/jinja").resolve()
PROGRAM = """\
import argparse, sys
parser = argparse.ArgumentParser()
for name in "data_dir data_name model_name model_dir model_path model_dict_path log_path".split():
    parser.add_argument("--" + name, required=True)
given = parser.parse_args()
print("read", open(given.data_dir + "/" + given.data_name).read().strip())
print("a warning", file=sys.stderr)
open(given.model_path + "/weights", "w").write("1")
sys.exit({code})
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """The folder in which the seed's user works."""
    shutil.copytree(COMPAT, tmp_path / "auto-config")
    return tmp_path / "auto-config"


@pytest.mark.processes
def test_the_seeds_five_steps_lead_from_the_edited_template_to_a_trained_model(desk: Path) -> None:
    nfs = desk / "nfs"
    # 1. Edit.
    template = desk / "tf_single_template.yaml.jinja"
    text = template.read_text().replace('default("model-1")', 'default("ckpt-198d-8f-322")')
    text = text.replace('default("data.csv")', 'default("days.csv")')
    for name in ("data", "log", "model", "src"):
        text = text.replace(f'default("/{name}")', f'default("{nfs / name}")')
    template.write_text(text)
    # 2. Upload.
    for name, file, content in (("data", "days.csv", "1,2"), ("src", "train.py", PROGRAM.format(code=0))):
        (nfs / name / "boc-web-predict").mkdir(parents=True)
        (nfs / name / "boc-web-predict" / file).write_text(content)
    # 3. Render, with the seed's words.
    line = ["render_template.py", "single", "tf_single_template.yaml.jinja", "boc-web-predict"]
    objects = documents(python(*line, cwd=desk).out)
    # 4. Create: what its container runs.
    job = named(objects, "Job", "boc-web-predict-ckpt-198d-8f-322")
    done = _run(job)
    assert (done.returncode, done.stdout, done.stderr) == (0, "read 1,2\n", "a warning\n")
    log = nfs / "log" / "boc-web-predict" / "boc-web-predict-ckpt-198d-8f-322.log"
    assert (log.read_text(), log.with_suffix(".errlog").read_text()) == ("read 1,2\n", "a warning\n")
    assert (nfs / "model" / "boc-web-predict" / "ckpt-198d-8f-322" / "weights").exists()
    # 5. Delete: kubectl delete jobs {{ project_name }}-{{ model_name }} --namespace=dcdp
    assert job["metadata"] == {"name": "boc-web-predict-ckpt-198d-8f-322", "namespace": "dcdp"}


@pytest.mark.processes
def test_a_program_that_fails_fails_the_job_although_its_output_goes_through_pipes(tmp_path: Path) -> None:
    (tmp_path / "src" / "p").mkdir(parents=True)
    (tmp_path / "data" / "p").mkdir(parents=True)
    (tmp_path / "data" / "p" / "data.csv").write_text("")
    (tmp_path / "src" / "p" / "train.py").write_text(PROGRAM.format(code=3))
    sets = [f"--set={name}_dir={tmp_path / name}" for name in ("data", "log", "model", "src")]
    done = tfyard("template", "single", SHIPPED / "tf_single_template.yaml.jinja", "p", *sets)
    assert _run(named(done.objects, "Job", "p-model-1")).returncode == 3


STOPPABLE = """\
import os, signal, sys
def stop(*_):
    print("the last line", flush=True)
    print("a last warning", file=sys.stderr)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
while True: signal.pause()
"""


@pytest.mark.processes
@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("mode", ["single", "cluster"])
def test_a_program_gets_the_signal_to_stop_and_its_last_lines_are_kept(
    tmp_path: Path, mode: str, shell: str
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (tmp_path / "src" / "p").mkdir(parents=True)
    (tmp_path / "src" / "p" / "train.py").write_text(STOPPABLE)
    sets = [f"--set={name}_dir={tmp_path / name}" for name in ("data", "log", "model", "src")]
    done = tfyard("template", mode, SHIPPED / f"tf_{mode}_template.yaml.jinja", "p", *sets)
    (container,) = of_kind(done.objects, "Job")[0]["spec"]["template"]["spec"]["containers"]
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        [shell, "-c", *container["args"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == b"ready\n"
        task.terminate()
        out, err = task.communicate(timeout=120)
    assert (task.returncode, out, err) == (7, b"the last line\n", b"a last warning\n")
    texts = [path.read_text() for path in sorted((tmp_path / "log" / "p").iterdir())]
    assert texts == ["a last warning\n", "ready\nthe last line\n"]
    assert list((tmp_path / "tmp").iterdir()) == []


def _run(job: dict) -> subprocess.CompletedProcess[str]:  # type: ignore[type-arg]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    command = [*container["command"], *container["args"]]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ, timeout=60, check=False)


def test_the_distributed_template_gives_every_task_a_name_a_service_and_an_index() -> None:
    line = ["render_template.py", "cluster", "tf_cluster_template.yaml.jinja", "boc-web-predict", "2", "2"]
    objects = python(*line, cwd=COMPAT).objects
    tasks = [f"boc-web-predict-{task}" for task in ("worker-0", "worker-1", "ps-0", "ps-1")]
    assert [o["metadata"]["name"] for o in of_kind(objects, "Service")] == tasks
    assert [o["metadata"]["name"] for o in of_kind(objects, "Job")] == tasks[:2]
    for index, deployment in enumerate(of_kind(objects, "Deployment")):
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert f"--job_name=ps \\\n  --task_index={index} \\" in container["args"][0]
        hosts = ",".join(f"{name}.dcdp.svc.cluster.local:2222" for name in tasks[2:])
        assert f"--ps_hosts={hosts} " in container["args"][0]
        assert deployment["spec"]["selector"]["matchLabels"] == deployment["metadata"]["labels"]


def test_what_all_jobs_share_is_a_separate_file_and_each_job_says_that_it_needs_it() -> None:
    shared = tfyard("template", "plain", SHIPPED / "tf_shared_template.yaml.jinja", "--set", "nfs_root=/x")
    claims = {
        o["metadata"]["name"]: o["spec"]["volumeName"]
        for o in of_kind(shared.objects, "PersistentVolumeClaim")
    }
    assert claims == {f"pvc-dcdp-{name}": f"pv-dcdp-{name}" for name in ("data", "src", "model", "log")}
    assert (len(shared.objects), shared.err) == (9, "")
    job = tfyard("template", "single", SHIPPED / "tf_single_template.yaml.jinja", "p")
    assert [o["kind"] for o in job.objects] == ["Job"]
    assert (
        f"must have the namespace dcdp and the claims {', '.join(claims)}; `tfyard template init shared`"
        in job.err
    )


def test_the_template_argument_is_honoured(tmp_path: Path) -> None:
    (tmp_path / "mine.jinja").write_text("kind: {{ project_name }}\n")
    assert python(COMPAT / "render_template.py", "single", "mine.jinja", "p", cwd=tmp_path).out == "kind: p\n"
    missing = python(COMPAT / "render_template.py", "single", "other.jinja", "p", cwd=tmp_path)
    assert missing.code == 2
    assert "other.jinja: file not found" in missing.err


@pytest.mark.parametrize(
    "line",
    [
        "tf_cluster_template.yaml.jinja boc 1 2",
        "mine.jinja",
        "cluster tf_cluster_template.yaml.jinja boc 1 2",
    ],
)
def test_older_command_lines_still_work(desk: Path, line: str) -> None:
    (desk / "mine.jinja").write_text("{% set name = 'mnist' %}\nkind: {{ name }}\n")
    assert python("render_template.py", *line.split(), cwd=desk).objects


def test_the_older_command_line_takes_values_too(desk: Path) -> None:
    line = ["single", "--set", "model_name=m-2", "tf_single_template.yaml.jinja", "boc", "--set=image=a b"]
    (job,) = python("render_template.py", *line, cwd=desk).objects
    assert job["metadata"]["name"] == "boc-m-2"
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "a b"


@pytest.mark.parametrize("line", ["", "single", "single t", "double t p", "cluster t p 1", "single t p 1 2"])
def test_a_wrong_number_of_arguments_shows_how_it_is_called(line: str) -> None:
    done = python("render_template.py", *line.split(), cwd=COMPAT)
    assert done.code == 1
    assert "python render_template.py single TEMPLATE PROJECT" in done.err


def test_init_writes_the_templates_for_editing_and_overwrites_nothing(tmp_path: Path) -> None:
    for mode in ("single", "cluster", "shared"):
        name = f"tf_{mode}_template.yaml.jinja"
        assert tfyard("template", "init", mode, cwd=tmp_path).code == 0
        assert (tmp_path / name).read_bytes() == (COMPAT / name).read_bytes() == (SHIPPED / name).read_bytes()
        assert "exists; --force" in tfyard("template", "init", mode, cwd=tmp_path).err


def test_values_come_from_files_and_from_the_command_line_which_wins(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("image: one\nport: 5000\n")
    (tmp_path / "t.jinja").write_text("a: {{ image }}\nb: {{ port + 1 }}\nc: {{ flag }}\n")
    options = ["--values", "values.yaml", "--set", "image=two", "--set", "flag=true"]
    done = tfyard("template", "single", "t.jinja", "p", *options, cwd=tmp_path)
    assert documents(done.out) == [{"a": "two", "b": 5001, "c": True}]


def test_a_misspelled_name_in_a_file_of_values_is_warned_about_and_others_are_for_other_templates(
    tmp_path: Path,
) -> None:
    (tmp_path / "values.yaml").write_text("imgae: one\nnfs_server: 10.0.0.1\nport: 1\n")
    (tmp_path / "t.jinja").write_text("a: {{ image | default(2) }}\nb: {{ port }}\n")
    done = tfyard("template", "plain", "t.jinja", "--values", "values.yaml", cwd=tmp_path)
    assert documents(done.out) == [{"a": 2, "b": 1}]
    assert done.err == (
        "t.jinja: warning: --values: the template does not use 'imgae'\n  fix: did you mean image?\n"
    )


OLD = """\
{% for i in range(2) %}
---
apiVersion: extensions/v1beta1
kind: ReplicaSet
metadata: {name: old-{{ i }}}
spec: {template: {}}
{% endfor %}
---
{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: old}}
"""


def test_a_version_that_no_cluster_serves_is_warned_about_once_with_the_name_of_today(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(OLD)
    done = tfyard("template", "plain", "t.jinja", cwd=tmp_path)
    assert len(done.objects) == 3
    assert done.err.count("warning:") == 2
    assert "(rendered):3:1: warning: apiVersion: no cluster serves extensions/v1beta1 ReplicaSet" in done.err
    assert "fix: apiVersion: apps/v1, and a spec.selector with matchLabels" in done.err
    assert "fix: apiVersion: batch/v1\n" in done.err


def test_every_undefined_name_is_reported_with_its_line_and_guarded_ones_are_not(tmp_path: Path) -> None:
    text = "a: {{ x }}\nb: {{ y | default(2) }}\n{% if z is defined %}c: {{ z }}{% endif %}\nd: {{ w.q }}\n"
    (tmp_path / "t.jinja").write_text(text)
    out = tmp_path / "out.yaml"
    done = tfyard("template", "single", "t.jinja", "p", "-o", out, cwd=tmp_path)
    assert done.code == 1
    assert "t.jinja:1:1: error: template: 'x' is undefined" in done.err
    assert "t.jinja:4:1: error: template: 'w' is undefined" in done.err
    assert "--set x=VALUE" in done.err
    assert "'y'" not in done.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{% for x in y %}", "t.jinja:1:1: error: template: Unexpected end of template"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{% include 'other' %}", "no loader"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "calls itself endlessly"),
        ("a: [1", "(rendered):"),
        (
            "{{ project_name.nothing }}",
            "t.jinja:1:1: error: template: 'str object' has no attribute 'nothing'",
        ),
    ],
)
def test_a_broken_template_is_an_error_and_never_a_traceback(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.jinja").write_text(text)
    done = tfyard("template", "single", "t.jinja", "p", cwd=tmp_path)
    assert (done.code, done.out) == (1, "")
    assert message in done.err


@pytest.mark.processes
def test_a_template_that_fills_the_memory_is_stopped(tmp_path: Path) -> None:
    text = (
        "{% set n = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
    )
    (tmp_path / "t.jinja").write_text(text)
    done = tfyard("template", "single", "t.jinja", "p", cwd=tmp_path)
    assert done.code == 1
    assert "needs more than 512 MB" in done.err


@pytest.mark.processes
def test_a_template_that_loops_for_ever_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = "{% for i in range(99999) %}"
    (tmp_path / "t.jinja").write_text(loop * 3 + "{% endfor %}" * 3)
    monkeypatch.setenv("TFYARD_TEMPLATE_SECONDS", "1")
    done = tfyard("template", "single", "t.jinja", "p", cwd=tmp_path)
    assert done.code == 1
    assert "template: not finished after" in done.err


def test_a_template_that_writes_without_end_is_stopped() -> None:
    with pytest.raises(Invalid, match="writes more than"):
        templates.fill("{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}", {})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Boc_Web",), "project 'Boc_Web': must be lower-case"),
        (("p", "0", "1000000000"), "PS '0': must be a number from 1 to 10,000; WORKERS '1000000000'"),
        (("p", "one", "2"), "PS 'one'"),
        (("p", "--set", "1x=2", "--set", "y"), "--set 1x=2, y: must be NAME=VALUE"),
        (("p", "--set", "imgae=a"), "--set imgae: the template does not use it; did you mean image?"),
        (("p", "--set", "worker_hosts=a"), "--set worker_hosts: the template does not use it"),
        (("p", "--set", "project_name=a"), "--set project_name: given by an argument already"),
    ],
)
def test_bad_arguments_are_all_reported_at_once(arguments: tuple[str, ...], message: str) -> None:
    done = tfyard("template", "cluster", SHIPPED / "tf_cluster_template.yaml.jinja", *arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_a_project_whose_job_name_gets_too_long_is_refused() -> None:
    template = SHIPPED / "tf_single_template.yaml.jinja"
    done = tfyard("template", "single", template, "p" * 80)
    assert done.code == 2
    assert "at most 63" in done.err
    done = tfyard("template", "single", template, "p" * 60)
    assert (done.code, done.out) == (1, "")
    assert "metadata.name: must be lower-case letters, digits and '-', at most 63" in done.err
    done = tfyard("template", "single", template, "p", "--set", "model_name=Model_1")
    assert "p-Model_1" in done.err


def test_the_image_of_the_packaged_templates_is_the_one_of_every_other_command() -> None:
    for name in ("tf_single_template.yaml.jinja", "tf_cluster_template.yaml.jinja"):
        assert f'image | default("{DEFAULT_IMAGE}")' in (SHIPPED / name).read_text()
