"""`tfyard render` as a command: bad input, its output file, and the modules that it imports."""

from pathlib import Path

import pytest

from .calling import JOBS, python, tfyard


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nimage: x\nworkers: 2\n", "did you mean worker?"),
        ("name: a\nimage: x\nworker: two\n", "worker: must be"),
        ("name: a\nimage: x\nworker: 1000000000\n", "a number from 0 to 100000"),
        (f"name: {'a' * 70}\nimage: x\nworker: 1\n", "is too long"),
        ("name: a\n", "image: must be given"),
        ("apiVersion: v1\nkind: Pod\n", "no TFJob, no tfyard job file and no config"),
        ("name: [\n", "error:"),
        ("", "no TFJob, no tfyard job file"),
    ],
)
def test_bad_input_is_refused_with_a_reason_and_leaves_no_file(
    tmp_path: Path, text: str, message: str
) -> None:
    done = tfyard("render", "-", "-o", "out.yaml", text=text, cwd=tmp_path)
    assert done.code in (1, 2)
    assert message in done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["plain", "legacy"])
def test_a_job_without_any_task_renders_to_nothing_and_says_so(form: str) -> None:
    done = tfyard("render", "-", "--as", form, text="name: a\nimage: x\nrun: train\nworker: 0\n")
    assert (done.code, done.out) == (1, "")
    assert "there is nothing to render" in done.err


def test_all_problems_of_a_job_file_come_at_once() -> None:
    done = tfyard("render", "-", text="name: A_b\nworkers: 2\ndeadline: soon\n")
    assert done.err.count("error:") >= 4


def test_a_failure_leaves_the_old_output_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "out.yaml").write_text("old\n")
    assert tfyard("render", "-", "-o", "out.yaml", text="name: a\n", cwd=tmp_path).code == 1
    assert (tmp_path / "out.yaml").read_text() == "old\n"


@pytest.mark.parametrize("words", [["render"], ["template", "plain"], ["notebook", "render"]])
def test_an_input_file_is_not_overwritten(words: list[str], tmp_path: Path) -> None:
    text = (JOBS / "cancer.yaml").read_text()
    (tmp_path / "job.yaml").write_text(text)
    done = tfyard(*words, "job.yaml", "-o", "job.yaml", cwd=tmp_path)
    assert (done.code, (tmp_path / "job.yaml").read_text()) == (2, text)
    assert done.err.endswith("tfyard: -o job.yaml is the file that is read; choose another name\n")


def test_the_output_can_be_a_file_a_link_or_a_device(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("old\n")
    (tmp_path / "link.yaml").symlink_to("real.yaml")
    for name in ("new.yaml", "link.yaml", "/dev/null"):
        assert tfyard("render", JOBS / "cancer.yaml", "-o", name, cwd=tmp_path).code == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert (tmp_path / "real.yaml").read_text() == (tmp_path / "new.yaml").read_text()
    assert "no/such" in tfyard("render", JOBS / "cancer.yaml", "-o", "no/such/out.yaml", cwd=tmp_path).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--services", "per-replica"), "--services is for --as plain"),
        (("--secret", "a=b"), "must be NAME/KEY=FILE"),
        (("--as", "jobset"), "is not one of 'tfjob', 'plain', 'legacy'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: tuple[str, ...], message: str) -> None:
    done = tfyard("render", JOBS / "cancer.yaml", *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_options_for_jobs_are_refused_for_a_config(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("resources: [{type: pd, properties: {name: a}}]\n")
    done = tfyard("render", tmp_path / "c.yaml", "--as", "plain")
    assert done.code == 2
    assert "only -o, --create-namespace and --explain are allowed" in done.err


def test_jinja_is_imported_only_for_templates_and_argon_only_for_passwords() -> None:
    code = (
        "import sys; sys.argv = ['tfyard', 'render', sys.argv[1], '-o', '/dev/null']\n"
        "from tfyard.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = ('jinja2', 'argon2', 'rich', 'asyncio')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert python("-c", code, JOBS / "cancer.yaml").out == "[]\n"


def test_a_thousand_tasks_are_a_config_like_any_other() -> None:
    text = "resources: [{type: tensorflow-cluster, properties: {jobs: {ps: 200, worker: 800}}}]\n"
    objects = tfyard("render", "-", text=text).objects
    assert sum(manifest["kind"] == "Service" for manifest in objects) == 1000
