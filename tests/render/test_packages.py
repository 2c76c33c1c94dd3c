"""`requirements`: packages that pods install before the training."""

import os
import subprocess
import sys
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tfyard.model import Code, Manifest
from tfyard.overview.job_record import told_software
from tfyard.render.code import layer_in_pod, layer_on_claim, with_requirements

from .calling import named, tfyard

SCRIPT = Path("src/tfyard/render/scripts/requirements.py").resolve()


def wheel(folder: Path, name: str) -> Path:
    """A package that is installed without a network."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}.py", "ANSWER = 42\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.processes
def test_tasks_that_start_together_install_into_one_layer_and_later_ones_find_it(tmp_path: Path) -> None:
    layers, file = tmp_path / "layers", tmp_path / "requirements.txt"
    for left in ("unused.part", "begun.part"):
        (layers / left / "made").mkdir(parents=True)
    os.utime(layers / "unused.part", (0, 0))  # "begun" may be a task that installs at this moment
    file.write_text(f"# ours\n{wheel(tmp_path, 'answers')}\n")
    with ThreadPoolExecutor() as pool:
        first = list(pool.map(lambda _: run(file, layers, "one"), range(2)))
    assert [done.returncode for done in first] == [0, 0], first
    assert any("Successfully installed answers-1.0" in done.stdout for done in first)
    assert sorted(path.name for path in layers.iterdir()) == ["begun.part", "one"]
    again = run(file, layers, "one")
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == f"the packages of {file} are in {layers}/one already\n"
    program = (
        f"import sys; sys.path.insert(0, {str(layers / 'one')!r}); import answers; print(answers.ANSWER)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).stdout == b"42\n"


@pytest.mark.processes
def test_a_failed_installation_is_reported_and_leaves_no_layer(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    file = tmp_path / "requirements.txt"
    file.write_text("./absent-1.0-py3-none-any.whl\n")
    done = run(file, tmp_path / "layers", "one")
    assert done.returncode == 1
    assert done.stderr.endswith(f"pip could not install the packages of {file} (exit code 1)\n")
    assert list((tmp_path / "layers").iterdir()) == []


@pytest.mark.processes
def test_an_image_without_pip_is_told(tmp_path: Path) -> None:
    venv.create(tmp_path / "image", symlinks=True)
    (tmp_path / "layers").mkdir()
    file = tmp_path / "requirements.txt"
    file.write_text("")
    command = [tmp_path / "image" / "bin" / "python", SCRIPT, file, tmp_path / "layers", "one"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(f"the image has no pip: the packages of {file} cannot be installed\n")


def template(**container: object) -> Manifest:
    return {"spec": {"containers": [{"name": "tensorflow", "image": "x", **container}]}}


def test_a_rendered_job_installs_packages_after_its_code_has_arrived(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "a.py").write_text("1\n")
    (tmp_path / "requirements.txt").write_text("tqdm\n")
    words = "name: a\nimage: x\ncode: .\nrequirements: requirements.txt\nrun: python train.py\n"
    (tmp_path / "job.yaml").write_text(words + "env: {PYTHONPATH: /mine}\ntf1: true\n")
    objects = tfyard("render", tmp_path / "job.yaml").objects
    spec = named(objects, "TFJob", "a")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
    assert [step["name"] for step in spec["initContainers"]] == ["tfyard-code", "tfyard-packages"]
    assert spec["initContainers"][1]["workingDir"] == "/code"
    command = spec["initContainers"][1]["command"]
    assert command[-3:] == ["/code/requirements.txt", "/tfyard-packages", "layer"]
    env = {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}
    assert env == {
        "TFYARD_OTHER_PACKAGES": "/mine",
        "TFYARD_PYTHONPATH": "/tfyard-packages/layer:$(TFYARD_OTHER_PACKAGES)",
        "PYTHONPATH": "/tfyard-tf1:$(TFYARD_PYTHONPATH)",
    }


@pytest.mark.processes
def test_the_step_that_installs_packages_tells_those_that_the_training_will_have(tmp_path: Path) -> None:
    (tmp_path / "layers").mkdir()
    (tmp_path / "needs.txt").write_text(f"{wheel(tmp_path, 'answers')}\n")
    code = Code(kind="folder", source=".", requirements="needs.txt", at=str(tmp_path))
    made = with_requirements(template(), code, {"name": "tfyard-code"}, layer_in_pod())
    (step,) = made["spec"]["initContainers"]
    command = [str(tmp_path / "layers") if word == "/tfyard-packages" else word for word in step["command"]]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for _ in ("installed", "there already"):
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
        )
        told = told_software(done.stdout)
        assert told is not None
        assert told.packages["answers"] == "1.0"
        assert told.packages["pytest"] == pytest.__version__


def test_a_requirements_file_that_is_not_packed_is_an_error(tmp_path: Path) -> None:
    for name, text in {"needs.txt": "tqdm\n", ".gitignore": "*.txt\n"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "job.yaml").write_text("name: a\nimage: x\ncode: .\nrequirements: needs.txt\nrun: ls\n")
    done = tfyard("render", tmp_path / "job.yaml")
    assert (done.code, done.out) == (1, "")
    assert "job.yaml:4:1: error: requirements: needs.txt is not among the files of the code" in done.err
    (tmp_path / ".tfyardignore").write_text("!needs.txt\n")
    assert tfyard("render", tmp_path / "job.yaml").code == 0


def test_a_layer_on_a_claim_is_known_by_the_image_and_the_text() -> None:
    volume = {"name": "tfyard-code", "persistentVolumeClaim": {"claimName": "c"}}
    layers = {
        layer_on_claim(volume, text, template(image=image))[1]
        for text, image in ((b"a", "x"), (b"a", "y"), (b"b", "x"), (b"a", "x"))
    }
    assert len(layers) == 3
    code = Code(kind="folder", source=".", requirements="r.txt")
    made = with_requirements(
        template(), code, {"name": "tfyard-code"}, layer_on_claim(volume, b"a", template())
    )
    (mount,) = made["spec"]["containers"][0]["volumeMounts"]
    assert mount == {
        "name": "tfyard-code",
        "mountPath": "/tfyard-packages",
        "subPath": "tfyard-code/packages",
        "readOnly": True,
    }
