"""Objects for a cluster without an operator: which pods run, what they get, and how the job ends."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tfyard.model import RestartPolicy, exit_codes
from tfyard.planner.indexes import compress

from . import kubelet
from .calling import JOBS, Manifest, named, of_kind, tfyard

SAY = "python3 -c 'import os; print(os.environ[\"TF_CONFIG\"])'"


def render(text: str, *options: str) -> list[Manifest]:
    return tfyard("render", "-", "--as", "plain", *options, text=text).objects


def job_file(roles: str, run: str = SAY) -> str:
    return f"name: cancer\nimage: tensorflow/tensorflow:2.21.0\nrun: |-\n  {run}\n{roles}\n"


def test_roles_that_share_a_pod_spec_become_one_job_that_ends_with_its_chief() -> None:
    (job,) = of_kind(render(job_file("chief: 1\nworker: 2\nps: 1")), "Job")
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 4
    assert job["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert job["spec"]["backoffLimit"] == 0


@pytest.mark.parametrize(("retries", "policy"), [(0, "Never"), (1, "OnFailure")])
def test_where_no_restart_is_allowed_the_kubelet_makes_none(retries: int, policy: str) -> None:
    (job,) = of_kind(render(job_file(f"worker: 1\nrestart: on-failure\nretries: {retries}")), "Job")
    assert (job["spec"]["backoffLimit"], job["spec"]["template"]["spec"]["restartPolicy"]) == (
        retries,
        policy,
    )
    assert ("podFailurePolicy" in job["spec"]) == (policy == "Never"), "an eviction is no failure"


def test_all_workers_must_succeed_where_the_file_says_so() -> None:
    (job,) = of_kind(render(job_file("worker: 3\nps: 1\nsuccess: all-workers")), "Job")
    assert job["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": "0-2"}]}


@pytest.mark.processes
def test_each_pod_of_the_one_job_finds_its_role_and_index_from_its_number(tmp_path: Path) -> None:
    objects = render(job_file("chief: 1\nworker: 2\nps: 1\nevaluator: 1"))
    (job,) = of_kind(objects, "Job")
    configs = [json.loads(kubelet.run(objects, job, i, tmp_path).stdout) for i in range(5)]
    tasks = [(config["task"]["type"], config["task"]["index"]) for config in configs]
    assert tasks == [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    training = {
        "chief": ["cancer-0.cancer.default.svc:2222"],
        "worker": ["cancer-1.cancer.default.svc:2222", "cancer-2.cancer.default.svc:2222"],
        "ps": ["cancer-3.cancer.default.svc:2222"],
    }
    assert [config["cluster"] for config in configs[:4]] == [training] * 4
    assert configs[4]["cluster"] == {**training, "evaluator": ["cancer-4.cancer.default.svc:2222"]}


@pytest.mark.processes
def test_classic_programs_get_their_hosts_role_and_index(tmp_path: Path) -> None:
    objects = render(job_file("worker: 2\nps: 1", "echo $PS_HOSTS $WORKER_HOSTS $JOB_NAME $TASK_INDEX"))
    (job,) = of_kind(objects, "Job")
    hosts = (
        "cancer-2.cancer.default.svc:2222 cancer-0.cancer.default.svc:2222,cancer-1.cancer.default.svc:2222"
    )
    outputs = [kubelet.run(objects, job, i, tmp_path).stdout.strip() for i in range(3)]
    assert outputs == [f"{hosts} worker 0", f"{hosts} worker 1", f"{hosts} ps 0"]


@pytest.mark.processes
def test_roles_that_differ_get_the_same_cluster_without_a_step_before_the_command(tmp_path: Path) -> None:
    objects = render(job_file("worker: {count: 2, cpu: 2}\nps: 1"))
    worker = named(objects, "Job", "cancer-worker")
    config = json.loads(kubelet.run(objects, named(objects, "Job", "cancer-ps"), 0, tmp_path).stdout)
    assert config["task"] == {"type": "ps", "index": 0}
    assert config["cluster"]["worker"] == [f"cancer-worker-{i}.cancer.default.svc:2222" for i in (0, 1)]
    assert worker["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": "0"}]}
    assert worker["spec"]["template"]["spec"]["subdomain"] == "cancer"


def test_the_index_is_defined_first_since_the_job_controller_appends_its_own_too_late() -> None:
    for text in (job_file("worker: 2\nps: 1"), job_file("worker: {count: 2, cpu: 2}\nps: 1")):
        for job in of_kind(render(text), "Job"):
            (container,) = job["spec"]["template"]["spec"]["containers"]
            assert container["env"][0]["name"] == "TASK_INDEX"


def test_a_service_for_each_task_gives_the_addresses_of_old() -> None:
    objects = render(
        job_file("worker: 2\nps: 1\nport: 8080"), "--services", "per-replica", "--domain", "cluster.local"
    )
    assert [s["metadata"]["name"] for s in of_kind(objects, "Service")] == [
        "cancer-worker-0",
        "cancer-worker-1",
        "cancer-ps-0",
    ]
    config = named(objects, "ConfigMap", "cancer-cluster")["data"]
    assert config["ps_hosts"] == "cancer-ps-0.default.svc.cluster.local:8080"
    assert of_kind(objects, "Service")[2]["spec"]["selector"] == {
        "batch.kubernetes.io/job-name": "cancer",
        "batch.kubernetes.io/job-completion-index": "2",
    }


def test_killed_tasks_run_again_and_failed_ones_fail_the_job_where_exit_codes_decide() -> None:
    objects = tfyard("render", JOBS / "mnist.yaml", "--as", "plain").objects
    spec = named(objects, "Job", "mnist-worker")["spec"]
    ignored, fatal = spec["podFailurePolicy"]["rules"]
    assert ignored["onPodConditions"][0]["type"] == "DisruptionTarget"
    assert fatal["action"] == "FailJob"
    assert fatal["onExitCodes"]["values"] == list(range(1, 128))
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (3, 7200)


def test_the_account_of_the_last_step_may_remove_the_other_jobs_and_nothing_else() -> None:
    objects = tfyard("render", JOBS / "mnist.yaml", "--as", "plain").objects
    (rule,) = named(objects, "Role", "mnist-chief")["rules"]
    assert rule["resourceNames"] == ["mnist-worker", "mnist-ps", "mnist-evaluator"]
    assert rule["verbs"] == ["get", "delete"]
    accounts = {
        job["metadata"]["name"]: job["spec"]["template"]["spec"].get("serviceAccountName")
        for job in of_kind(objects, "Job")
    }
    assert {name for name, account in accounts.items() if account == "mnist-chief"} == {"mnist-chief"}


def test_a_chief_without_a_known_command_is_refused_with_the_fix() -> None:
    text = "name: a\nimage: x\nworker: {count: 1, cpu: 1}\nps: 1\n"
    done = tfyard("render", "-", "--as", "plain", text=text)
    assert done.code == 1
    assert "worker.run: has no command" in done.err
    assert "--as tfjob" in done.err


def test_a_lone_task_needs_neither_names_nor_a_cluster() -> None:
    assert [o["kind"] for o in render(job_file("worker: 1"))] == ["Job"]


def test_an_alpha_master_alone_has_a_name_since_its_script_reads_tf_config() -> None:
    text = """\
apiVersion: tensorflow.org/v1alpha1
kind: TfJob
metadata: {name: a}
spec:
  replicaSpecs:
  - template: {spec: {containers: [{name: tensorflow, image: x, command: [train]}], restartPolicy: Never}}
"""
    objects = render(text)
    spec = named(objects, "Job", "a-master")["spec"]["template"]["spec"]
    assert spec["subdomain"] == named(objects, "Service", "a")["metadata"]["name"]
    assert named(objects, "ConfigMap", "a-cluster")["data"]["names"] == "a-master-0.a.default.svc\n"


def test_what_plain_jobs_do_not_support_is_reported() -> None:
    done = tfyard("render", JOBS / "mnist.yaml", "--as", "plain")
    assert "not in plain objects: evaluator.grace" in done.err


@pytest.mark.processes
def test_a_task_waits_for_names_and_says_for_which(tmp_path: Path) -> None:
    script = Path("src/tfyard/render/scripts/wait.sh").resolve()
    names = tmp_path / "names"
    names.write_text("localhost\nno-such-task.invalid\n")
    process = subprocess.Popen(["/bin/sh", script, names], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    assert line.startswith("waiting for the name no-such-task.invalid, 0 s so far")
    names.write_text("localhost")
    done = subprocess.run(["/bin/sh", script, names], capture_output=True, text=True, check=True)
    assert done.stdout == "all names resolve, after 0 s\n"


class Api(ThreadingHTTPServer):
    """The part of an API server that the last step uses: Jobs by name, and a list of the deleted ones."""

    def __init__(self, jobs: dict[str, Any]) -> None:
        self.jobs, self.deleted = jobs, []
        super().__init__(("127.0.0.1", 0), _Handler)

    deleted: list[str]


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        self._answer(self.server.jobs.get(self.path.rpartition("/")[2]))

    def do_DELETE(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert body["propagationPolicy"] == "Background"
        assert self.headers["Authorization"] == "Bearer token"
        self.server.deleted.append(self.path)
        self._answer({})

    def _answer(self, body: Any) -> None:
        data = json.dumps(body or {}).encode()
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """No log lines in the output of the tests."""


@pytest.fixture
def api() -> Iterator[Api]:
    running: Any = {"status": {"succeeded": 0}}
    complete: Any = {"status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    server = Api({"cancer-ps": running, "cancer-done": complete})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _environment(api: Api, tmp_path: Path, restart: RestartPolicy, index: int) -> dict[str, str]:
    (tmp_path / "token").write_text("token")
    jobs = ["cancer-ps", "cancer-done", "gone"]
    permanent = compress(exit_codes.permanent(restart))
    instructions = {"namespace": "ns", "jobs": jobs, "index": index, "permanent": permanent, "all": False}
    return {
        **os.environ,
        "no_proxy": "127.0.0.1",
        "TASK_INDEX": "1",
        "TFYARD_END": json.dumps(instructions),
        "TFYARD_ACCOUNT": str(tmp_path),
        "TFYARD_SERVER": f"http://127.0.0.1:{api.server_port}",
    }


def _last_step(
    api: Api, tmp_path: Path, code: int, restart: RestartPolicy = "Never", index: int = 1
) -> subprocess.CompletedProcess[str]:
    env = _environment(api, tmp_path, restart, index)
    command = ["python3", "src/tfyard/render/scripts/end.py", str(code)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)


@pytest.mark.processes
def test_the_last_step_removes_what_runs_and_keeps_what_has_finished(api: Api, tmp_path: Path) -> None:
    done = _last_step(api, tmp_path, 0)
    assert api.deleted == ["/apis/batch/v1/namespaces/ns/jobs/cancer-ps"]
    assert done.stdout == "the training has ended: deleted cancer-ps\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("code", "restart", "ends"),
    [(1, "Never", True), (1, "ExitCode", True), (137, "ExitCode", False), (1, "OnFailure", False)],
)
def test_a_failure_ends_the_others_only_if_it_is_final(
    api: Api, tmp_path: Path, code: int, restart: RestartPolicy, ends: bool
) -> None:
    _last_step(api, tmp_path, code, restart)
    assert bool(api.deleted) is ends


@pytest.mark.processes
def test_the_last_step_belongs_to_the_task_that_ends_the_job(api: Api, tmp_path: Path) -> None:
    _last_step(api, tmp_path, 0, index=0)
    assert api.deleted == []
    _last_step(api, tmp_path, 0, index=1)
    assert api.deleted != []


@pytest.mark.processes
@pytest.mark.parametrize(("program", "ends"), [("exit 143", False), ("exit 7", False), ("exit 0", True)])
def test_a_drained_task_leaves_the_others_alone_unless_it_has_finished(
    api: Api, tmp_path: Path, program: str, ends: bool
) -> None:
    scripts = Path("src/tfyard/render/scripts").resolve()
    (tmp_path / "last.sh").write_text((scripts / "last.sh").read_text().replace("/tfyard", str(scripts)))
    program = f"trap '{program}' TERM; echo ready; while :; do sleep 0.05; done"
    command = ["/bin/sh", str(tmp_path / "last.sh"), "/bin/sh", "-c", program]
    env = _environment(api, tmp_path, "Never", 1)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    assert bool(api.deleted) is ends


def _old_job(chief: str, index: int) -> str:
    pod = "{spec: {containers: [{name: tensorflow, image: x, command: [train, %s]}], restartPolicy: Never}}"
    return f"""\
apiVersion: kubeflow.org/v1alpha1
kind: TFJob
metadata: {{name: a}}
spec:
  terminationPolicy: {{chief: {{replicaName: {chief}, replicaIndex: {index}}}}}
  replicaSpecs:
  - {{tfReplicaType: WORKER, replicas: 3, template: {pod % "worker"}}}
  - {{tfReplicaType: PS, replicas: 2, template: {pod % "ps"}}}
"""


@pytest.mark.parametrize(("chief", "index"), [("WORKER", 0), ("WORKER", 1), ("PS", 1)])
def test_a_job_ends_with_the_task_that_its_termination_policy_names(chief: str, index: int) -> None:
    job = named(render(_old_job(chief, index)), "Job", f"a-{chief.lower()}")
    assert job["spec"]["successPolicy"] == {"rules": [{"succeededIndexes": str(index)}]}
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (instructions,) = [entry["value"] for entry in container["env"] if entry["name"] == "TFYARD_END"]
    assert json.loads(instructions)["index"] == index


def test_a_job_without_chief_and_workers_ends_with_its_first_role_as_the_operator_decides() -> None:
    objects = render("name: a\nimage: x\nrun: train\nps: 2\nevaluator: 1\n")
    (rule,) = named(objects, "Job", "a")["spec"]["successPolicy"]["rules"]
    assert rule == {"succeededIndexes": "0-1"}
    objects = render("name: a\nimage: x\nrun: train\nps: {count: 2, cpu: 1}\nevaluator: 1\n")
    (container,) = named(objects, "Job", "a-ps")["spec"]["template"]["spec"]["containers"]
    (instructions,) = [
        json.loads(entry["value"]) for entry in container["env"] if entry["name"] == "TFYARD_END"
    ]
    assert (instructions["jobs"], instructions["wait"]) == (["a-evaluator"], {"job": "a-ps", "others": 1})


def test_a_command_with_tf_config_in_it_is_filled_in_so_each_role_has_a_job() -> None:
    objects = render("name: a\nimage: x\nrun: [python, t.py, '--tf=$(TF_CONFIG)']\nworker: 2\nps: 1\n")
    assert [job["metadata"]["name"] for job in of_kind(objects, "Job")] == ["a-worker", "a-ps"]
    for job in of_kind(objects, "Job"):
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert "TF_CONFIG" in [entry["name"] for entry in container["env"]]


LAST = str(Path("src/tfyard/render/scripts/last.sh").resolve())
SLOW = f'trap() {{ sleep 0.5; builtin trap "$@"; }}; . {LAST}'
"""A shell that is delayed before it sets its trap for signals."""


@pytest.mark.processes
@pytest.mark.parametrize("shell", [("/bin/sh", LAST), ("bash", "-c", SLOW, LAST)], ids=["usual", "slow"])
def test_the_last_step_passes_on_signals_and_keeps_the_exit_code(shell: tuple[str, ...]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"needs {shell[0]}")
    program = "trap 'echo stopped; exit 7' TERM; echo ready; while :; do sleep 0.05; done"
    command, env = [*shell, "/bin/sh", "-c", program], {**os.environ, "TASK_INDEX": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 7
            assert process.stdout.read() == "stopped\n"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
