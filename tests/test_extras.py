"""Commands without the packages of their extra, in a process where those cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import without

pytestmark = pytest.mark.processes
TESTING = "from tfyard.testing import ControlPlane"


def python(program: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("module", "words", "message"),
    [
        ("aiohttp", ("operator",), 'the operator needs aiohttp: pip install "tfyard[operator]"'),
        (
            "prometheus_client",
            ("operator",),
            'the operator needs prometheus-client: pip install "tfyard[operator]"',
        ),
        ("aiohttp", ("dev", "up"), 'tfyard dev needs aiohttp: pip install "tfyard[dev]"'),
        ("cryptography", ("dev", "up"), 'tfyard dev needs cryptography: pip install "tfyard[dev]"'),
        (
            "aiohttp",
            ("submit", "job.yaml", "--follow"),
            'tfyard submit --follow needs aiohttp: pip install "tfyard[kubernetes]"',
        ),
        ("aiohttp", ("dashboard",), 'tfyard dashboard needs aiohttp: pip install "tfyard[dashboard]"'),
        (
            "argon2",
            ("notebook", "render", "--password-env", "HOME"),
            'Jupyter\'s password needs argon2-cffi: pip install "tfyard[notebook]"',
        ),
    ],
)
def test_one_line_says_what_to_install(
    tmp_path: Path, module: str, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\nrun: 'true'\n")
    done = python(without(module), *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"tfyard: {message}\n")


HIDDEN = """
import sys
class Hides:
    def find_spec(self, name, path=None, target=None):
        if name == "tensorboard":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hides())
"""


def test_a_run_says_where_tensorboard_is_to_be_installed(tmp_path: Path) -> None:
    """It belongs to the interpreter of the tasks, so it is hidden from every Python that is started."""
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\nrun: 'true'\ntensorboard: /logs\n")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    command = [sys.executable, "-m", "tfyard", "run", "job.yaml", "--tensorboard", "--python", sys.executable]
    paths = os.pathsep.join([str(tmp_path / "hidden"), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    fix = f"{sys.executable} -m pip install tensorboard"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tfyard: --tensorboard: TensorBoard is not installed; {fix}\n"


@pytest.mark.parametrize("module", ["aiohttp", "cryptography"])
def test_the_control_plane_says_what_to_install_and_is_an_import_error(tmp_path: Path, module: str) -> None:
    done = python(without(module, then=TESTING), cwd=tmp_path)
    message = f'a control plane needs {module}: pip install "tfyard[control-plane]"'
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"tfyard.extras.MissingExtra: {message}")
    caught = f"try:\n    {TESTING}\nexcept ImportError as error:\n    print(error)"
    assert python(without(module, then=caught), cwd=tmp_path).stdout == f"{message}\n"


def test_all_other_commands_need_no_extra(tmp_path: Path) -> None:
    program = without("aiohttp", "prometheus_client", "argon2", "cryptography", "tensorboard", "tensorflow")
    (tmp_path / "job.yaml").write_text("name: a\nimage: b\nrun: 'true'\n")
    for words in (
        ("validate", "job.yaml"),
        ("render", "job.yaml"),
        ("run", "job.yaml", "-q"),
        ("runs",),
        ("crds",),
    ):
        done = python(program, *words, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
