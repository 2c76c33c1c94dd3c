"""Fixes speak of what the user gave: a job file, a script or a TFJob."""

import pytest

from tests.overview.situations import ended as end
from tests.overview.situations import job, pod, why
from tfyard.model import Role
from tfyard.overview.fixes import spoken

FIXES = {
    "job file: `env: {BUCKET: …}`": (
        "`--env BUCKET=…`",
        'TFJob: `env: [{name: BUCKET, value: "…"}]` of the container tensorflow',
    ),
    "job file: `memory: 12Gi`, or smaller batches": (
        "`--memory 12Gi`, or smaller batches",
        "TFJob: `resources: {limits: {memory: 12Gi}}` of the container tensorflow, or smaller batches",
    ),
    "job file: more `retries:`": ("more `--retries`", "TFJob: more `runPolicy.backoffLimit:`"),
    "job file: without `ps:`; or a program with ParameterServerStrategy": (
        "without `--ps`; or a program with ParameterServerStrategy",
        "TFJob: without `tfReplicaSpecs.PS:`; or a program with ParameterServerStrategy",
    ),
    "activate its environment; if it is your own code, job file: `run: python -m pkg.train`": (
        "activate its environment; if it is your own code, `-m pkg.train`",
        "activate its environment; if it is your own code, TFJob: `command: [python, -m, pkg.train]` of the"
        " container tensorflow",
    ),
    "job file: `run:`; or an image that has it": (
        "`tfyard run SCRIPT --save job.yaml` writes a job file; there: `run:`; or an image that has it",
        "TFJob: `command:` of the container tensorflow; or an image that has it",
    ),
    "job file: `overlay: {spec: {securityContext: {runAsUser: 1000}}}`": (
        "`tfyard run SCRIPT --save job.yaml` writes a job file; there: `overlay: {spec: {securityContext:"
        " {runAsUser: 1000}}}`",
        "TFJob: `template: {spec: {securityContext: {runAsUser: 1000}}}`",
    ),
    "job file: `spread: prefer`": (
        "`tfyard run SCRIPT --save job.yaml` writes a job file; there: `spread: prefer`",
        "`tfyard convert FILE --to jobfile` writes a job file; there: `spread: prefer`",
    ),
    "job file: `success: all-workers`": (
        "`tfyard run SCRIPT --save job.yaml` writes a job file; there: `success: all-workers`",
        "TFJob: `successPolicy: AllWorkers`",
    ),
    "kubectl uncordon a": ("kubectl uncordon a", "kubectl uncordon a"),
}


@pytest.mark.parametrize(("fix", "said"), FIXES.items(), ids=FIXES)
def test_a_fix_speaks_of_what_was_given(fix: str, said: tuple[str, str]) -> None:
    assert spoken(fix, "job-file") == fix
    assert (spoken(fix, "script"), spoken(fix, "tfjob")) == said


NO_MODULE = "ModuleNotFoundError: No module named 'pkg'"
NO_PROGRAM = "python: can't open file '/code/pkg/train.py': [Errno 2] No such file or directory"
NOT_ALLOWED = 'exec: "./run.sh": permission denied: unknown'


def fix(text: str, *command: str, code: str = "/code", exit_code: int = 1, reason: str = "Error") -> str:
    """Of a job whose worker-0 ended with this text."""
    template = {"spec": {"containers": [{"name": "tensorflow", "command": list(command)}]}}
    roles = (Role(name="Worker", replicas=2, template=template),)
    found = why(job(pod(status=end(exit_code, text, reason)), roles=roles, code=code))
    return found.causes[0].fix


def test_the_fix_for_a_module_of_ones_own_is_not_the_code_that_is_there_already() -> None:
    image = "job file: an `image:` that has it; if it is your own code, "
    assert fix(NO_MODULE, "python", "train.py", code="") == f"{image}job file: `code: .`"
    assert fix(NO_MODULE, "python", "-u", "pkg/train.py") == f"{image}job file: `run: python -m pkg.train`"
    shell = ("/bin/sh", "-c", "exec python /code/pkg/sub/train.py --steps 3")
    assert fix(NO_MODULE, *shell) == f"{image}job file: `run: python -m pkg.sub.train`"
    left_out = "; files that .gitignore names are not sent: a line `!PATH` in .tfyardignore brings them"
    assert fix(NO_MODULE, "python", "train.py") == f"{image}its file is missing beside the program{left_out}"
    assert fix(NO_PROGRAM, exit_code=2) == f"its path is relative to the folder of `code:`{left_out}"


def test_a_file_of_the_code_is_made_executable_where_the_code_is() -> None:
    allowed = "; or run it by `python` or `sh`"
    own = "make it executable in the folder of the code: `chmod +x run.sh`, and submit it again"
    assert fix(NOT_ALLOWED, "./run.sh", exit_code=126, reason="StartError") == own + allowed
    in_image = fix(NOT_ALLOWED, "./run.sh", code="", exit_code=126, reason="StartError")
    assert in_image == f"make it executable in the image: `chmod +x`{allowed}"
