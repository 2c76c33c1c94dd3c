"""Tasks that failed or were taken away: the causes, by real last words."""

import msgspec
import pytest

from tests.overview.situations import (
    NEVER_BEGUN,
    Manifest,
    ago,
    condition,
    container,
    crashing,
    ended,
    ended_in_place,
    job,
    local,
    pod,
    running,
    stamp,
    status,
    warning,
    why,
)
from tfyard.model import Ending, Failure, Role, RoleMemory, RoleStatus
from tfyard.overview.evidence import LONGEST_LINE, LogTail

KERAS_3 = """\
Traceback (most recent call last):
  File "/code/k3.py", line 6, in <module>
    m.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=1, verbose=2)
  File "/usr/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in error_handler
    raise e.with_traceback(filtered_tb) from None
  File "/usr/lib/python3.11/site-packages/tensorflow/python/framework/constant_op.py", line 108, in convert
    return ops.EagerTensor(value, ctx.device_name, dtype)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ValueError: Attempt to convert a value (PerReplica:{
  0: <tf.Tensor: shape=(4, 2), dtype=float32, numpy=
array([[1., 1.],
       [1., 1.]], dtype=float32)>
}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor."""
AUTOGRAPH = """\
Traceback (most recent call last):
  File "/code/shape.py", line 7, in <module>
    main()
  File "/tmp/__autograph_generated_file8po15wro.py", line 12, in tf__f
    retval_ = ag__.converted_call(…)
ValueError: in user code:

    File "/code/shape.py", line 4, in f  *
        return tf.reshape(b, [tf.size(a)])

    ValueError: Cannot reshape a tensor with 4 elements to shape [6] (6 elements) for '{{node Reshape}} = R' with …
"""
GRAPH = """\
tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:

Detected at node sparse_softmax defined at (most recent call last):
  File "/code/train.py", line 9, in <module>

Node: 'sparse_softmax'
logits and labels must be broadcastable: logits_size=[32,10] labels_size=[16,10]
\t [[{{node sparse_softmax}}]] [Op:__inference_step_660]"""
COORDINATED = (
    "ValueError: To use this dataset, you need to pass this dataset to ClusterCoordinator.create_per_w"
)
BY_KERAS = '  File "/usr/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py", line 122, in f'
PROGRAMS = {
    f"Traceback (most recent call last):\n{BY_KERAS}\n{COORDINATED}": ("keras-3", "Keras 3", "tf_keras"),
    COORDINATED: ("program-error", "you need to pass this dataset", ""),
    KERAS_3: ("keras-3", "Keras 3 does not train under MultiWorkerMirroredStrategy", "TF_USE_LEGACY_KERAS"),
    AUTOGRAPH: ("program-error", "elements to shape [6] (6 elements) (/code/shape.py:4)", ""),
    f'Traceback (most recent call last):\n  File "/code/train.py", line 9, in <module>\n    fit()\n{GRAPH}': (
        "program-error",
        "InvalidArgumentError: logits and labels must be broadcastable: logits_size=[32,10] labels_size=[16,10]"
        " (/code/train.py:9)",
        "",
    ),
    "Traceback (most recent call last):\n  File \"/code/t.py\", line 1, in <module>\n    import pandas\n"
    "ModuleNotFoundError: No module named 'pandas'": ("missing-module", "not find the module pandas", "`image:`"),
    "ModuleNotFoundError: No module named 'tensorflow.contrib'": ("tensorflow-1", "TensorFlow 1", "`tf1: true`"),
    "AttributeError: module 'tensorflow' has no attribute 'app'": ("tensorflow-1", "TensorFlow 1", "`tf1: true`"),
    "AttributeError: module 'tensorflow' has no attribute 'foo'": ("program-error", "no attribute 'foo'", ""),
    "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[64]": (
        "gpu-memory",
        "more memory than its GPU",
        "smaller batches",
    ),
    "tensorflow.python.training.basic_session_run_hooks.NanLossDuringTrainingError: NaN loss during training.": (
        "nan-loss",
        "not a number",
        "learning rate",
    ),
    "E0000 00:00:1 11 chttp2_server.cc:1045] UNKNOWN:No address added out of total 1 resolved for '[::]:2222'"
    " {children:[UNKNOWN:Unable to configure socket {fd:10, children:[UNKNOWN:Address already in use]}]}\n"
    "tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server": (
        "address-in-use",
        "its port 2222 is in use",
        "`port:`",
    ),
    "E0000 00:00:1 11 add_port.cc:83] Failed to add port to server: No address added out of total 1 resolved for"
    " '0.0.0.0:35775'\ntensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server": (
        "address-in-use",
        "its port 35775 cannot be opened: usually another process has it",
        "`port:`",
    ),
    "OSError: [Errno 28] No space left on device: '/out/ckpt'": ("no-space", "ran out of disk space", "`size:`"),
    "PermissionError: [Errno 13] Permission denied: '/out/model/ckpt-1'": (
        "volume-not-writable",
        "may not write to its volume at /out",
        "fsGroup",
    ),
    "OSError: [Errno 30] Read-only file system: '/out/ckpt'": (
        "volume-not-writable",
        "worker-0 may not write to /out: it is mounted read-only",
        "`readOnly: true`",
    ),
    "tensorflow.python.framework.errors_impl.FailedPreconditionError: /out/events; Read-only file system": (
        "volume-not-writable",
        "worker-0 may not write to /out: it is mounted read-only",
        "`readOnly: true`",
    ),
    "python: can't open file '/app/train.py': [Errno 2] No such file or directory": (
        "missing-file",
        "there is no program /app/train.py",
        "`code: .`",
    ),
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/x.csv'": ("missing-file", "/data/x.csv", ""),
    "usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --setps": (
        "program-error",
        "ended with exit code 1: train.py: error: unrecognized arguments: --setps",
        "",
    ),
    "": ("program-error", "worker-0 ended with exit code 1, and said nothing about the cause", ""),
}  # fmt: skip
MOUNT: Manifest = {
    "containers": [{"name": "tensorflow", "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]
}
FAILED = status(condition("Failed"), failure=Failure(cause="TaskFailed", task="worker-0", exit_code=1))
ROLES = (Role(name="Worker", replicas=2, template={"spec": MOUNT}),)


@pytest.mark.parametrize("word", ["x", "/", "a/", "x:", "Warning", "'", "File ", "0.", "[", " "])
def test_a_line_of_64_kib_is_cut_before_causes_are_looked_for_in_it(word: str) -> None:
    """In the whole line it would take minutes, in which the page stands still, too."""
    log = LogTail.of([word * (65_536 // len(word)), "train.py: error: the disk is full"], ago(minutes=1))
    assert max(map(len, log.text.split("\n"))) == LONGEST_LINE
    found = job(pod(status=ended(1, "")), status=FAILED, roles=ROLES, logs={"worker-0": log})
    assert why(found).sentence.endswith("the disk is full")


@pytest.mark.parametrize(("text", "expected"), PROGRAMS.items(), ids=[kind for kind, *_ in PROGRAMS.values()])
def test_the_last_words_of_a_program_give_the_cause(text: str, expected: tuple[str, str, str]) -> None:
    kind, words, fix = expected
    answer = why(job(pod(status=ended(1, text)), status=FAILED, roles=ROLES))
    assert (answer.code, answer.causes[0].kind) == (1, kind)
    assert words in answer.sentence
    assert fix in answer.causes[0].fix
    assert "\n" not in answer.sentence
    assert all("\n" not in quote.text for quote in answer.causes[0].evidence)


INTO_CODE = {
    "OSError: [Errno 30] Read-only file system: 'model.keras'": "model.keras",
    "OSError: [Errno 30] Read-only file system: './my logs/a'": "./my logs/a",
    "OSError: [Errno 30] Read-only file system: '/code/ckpt'": "/code/ckpt",
    "tensorflow.python.framework.errors_impl.FailedPreconditionError: logs/x; Read-only file system": "logs/x",
    "mkdir: cannot create directory 'out': Read-only file system": "out",
    "OSError: [Errno 30] Unable to synchronously create file (unable to open file: name = 'm.h5', errno = 30,"
    " error message = 'Read-only file system', flags = 13, o_flags = 242)": "m.h5",
}


@pytest.mark.parametrize(("text", "path"), INTO_CODE.items(), ids=INTO_CODE.values())
@pytest.mark.parametrize("out", ["/out", ""])
def test_a_program_that_writes_beside_its_code_hears_where_it_may(text: str, path: str, out: str) -> None:
    """It works on one's own machine, so it is what scripts do that are submitted for the first time."""
    mounts = [{"name": "tfyard-code", "mountPath": "/code"}, {"name": "out", "mountPath": "/out"}]
    variables = [{"name": "TFYARD_OUT", "value": out}] if out else []
    container = {"name": "tensorflow", "workingDir": "/code", "env": variables, "volumeMounts": mounts}
    roles = (Role(name="Worker", template={"spec": {"containers": [container]}}),)
    answer = why(job(pod(status=ended(1, text)), status=FAILED, roles=roles, code="/code"))
    assert answer.causes[0].kind == "volume-not-writable"
    assert answer.sentence.startswith(
        f"worker-0 may not write {path}: /code has the code, which is read-only"
    )
    assert answer.causes[0].fix.startswith("write below /out: " if out else "write to a volume; job file: ")


def test_the_line_is_the_innermost_of_the_users_own_code() -> None:
    answer = why(job(pod(status=ended(1, KERAS_3)), status=FAILED))
    assert answer.sentence.endswith("(/code/k3.py:6)")
    assert answer.causes[0].evidence[0].text == "ValueError: Attempt to convert a value (PerReplica"


CODES = {
    132: "illegal-instruction",
    134: "abort",
    137: "killed",
    139: "crash",
}


@pytest.mark.parametrize(("code", "kind"), CODES.items())
def test_a_signal_is_named(code: int, kind: str) -> None:
    answer = why(job(pod(status=ended(code)), status=FAILED))
    assert answer.causes[0].kind == kind
    assert "SIG" in answer.sentence


def test_a_shell_that_does_not_find_its_program() -> None:
    asked = {"spec": {"containers": [{"name": "tensorflow", "image": "example/train:1"}]}}
    roles = (Role(name="Worker", template=asked),)
    answer = why(job(pod(status=ended(127, "sh: 1: pyhton: not found")), status=FAILED, roles=roles))
    assert answer.causes[0].kind == "command"
    assert "`pyhton` is not in the image example/train:1" in answer.sentence


def test_a_container_that_could_not_be_started_and_is_over() -> None:
    text = 'failed to create containerd task: … exec: "pyhton": executable file not found in $PATH: unknown'
    answer = why(job(pod(status=ended(128, text, "StartError")), status=FAILED))
    assert answer.causes[0].kind == "command"


def limited(memory: str) -> Role:
    container = {"name": "tensorflow", "resources": {"limits": {"memory": memory}}}
    return Role(name="Worker", template={"spec": {"containers": [container]}})


def test_out_of_memory_proposes_half_as_much_again() -> None:
    roles = (limited("8Gi"),)
    answer = why(job(pod(status=ended(137, "", "OOMKilled")), status=FAILED, roles=roles))
    assert answer.causes[0].kind == "out-of-memory"
    assert "memory limit of 8Gi" in answer.sentence
    assert "`memory: 12Gi`" in answer.causes[0].fix


def test_out_of_memory_may_have_exit_code_0() -> None:
    answer = why(job(pod(status=crashing(0, "", "OOMKilled"))))
    assert (answer.code, answer.causes[0].kind) == (3, "out-of-memory")


def test_a_crash_loop_says_what_crashed() -> None:
    answer = why(job(pod(status=crashing(1, "ModuleNotFoundError: No module named 'pandas'"))))
    assert (answer.code, answer.causes[0].kind) == (3, "missing-module")


def failed(reason: str, message: str = "", **conditions: str) -> Manifest:
    listed = [{"type": kind, "status": "True", "reason": why} for kind, why in conditions.items()]
    return {"phase": "Failed", "reason": reason, "message": message, "conditions": listed}


def test_an_eviction_names_the_pressure() -> None:
    text = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 900Mi."
    answer = why(job(pod(status=failed("Evicted", text))))
    assert answer.causes[0].kind == "evicted"
    assert "short of ephemeral-storage" in answer.sentence
    assert "`volumes:`" in answer.causes[0].fix
    text = "The node was low on resource: memory. Container tensorflow was using 9Gi, request is 1Gi."
    assert "short of memory" in why(job(pod(status=failed("Evicted", text)))).sentence


@pytest.mark.parametrize(
    ("text", "words", "fix"),
    [
        (
            'Usage of EmptyDir volume "scratch" exceeds the limit "10Mi". ',
            "wrote more than 10Mi into its volume scratch",
            "a larger `sizeLimit`",
        ),
        (
            'Container tensorflow exceeded its local ephemeral storage limit "1Gi". ',
            "wrote more than its limit of 1Gi of ephemeral-storage",
            "`volumes:`",
        ),
        (
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
            "wrote more than its limit of 2Gi of ephemeral-storage",
            "`volumes:`",
        ),
    ],
)
def test_an_eviction_names_the_limit_that_the_task_passed(text: str, words: str, fix: str) -> None:
    """The node is not short of anything then."""
    found = why(job(pod(status=failed("Evicted", text))))
    assert found.sentence == f"the node evicted worker-0, which {words}"
    assert fix in found.causes[0].fix


def test_an_init_container_that_failed_is_named_with_what_its_log_says() -> None:
    done = {"exitCode": 3, "reason": "Error", "finishedAt": stamp(ago(minutes=1))}
    waiting = container({"waiting": {"reason": "PodInitializing"}}, "Failed")
    prepare = [{"name": "prepare", "image": "example/data:1", "state": {"terminated": done}}]
    over = pod(status={**waiting, "initContainerStatuses": prepare})
    logs = {"worker-0": LogTail("there is no data", ago(minutes=1))}
    found = why(job(over, status=FAILED, logs=logs))
    assert found.sentence == "worker-0 ended with exit code 3: there is no data (its init container prepare)"


NO_PIP = """\
/usr/bin/python3: No module named pip
the image has no pip: the packages of /code/needs.txt cannot be installed
"""


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (NO_PIP, "job file: an `image:` that has pip; or build the packages into the image"),
        ("pip could not install the packages of /code/needs.txt (exit code 1)", "correct the file"),
    ],
)
def test_packages_that_were_not_installed_are_corrected_where_it_failed(text: str, fix: str) -> None:
    done = {"exitCode": 1, "reason": "Error", "message": text, "finishedAt": stamp(ago(minutes=1))}
    waiting = container({"waiting": {"reason": "PodInitializing"}}, "Failed")
    step = [{"name": "tfyard-packages", "image": "example/train:1", "state": {"terminated": done}}]
    found = why(job(pod(status={**waiting, "initContainerStatuses": step}), status=FAILED))
    assert "(its init container tfyard-packages, which installs the packages)" in found.sentence
    assert found.causes[0].fix.startswith(fix)


PROBED = (
    Role(
        name="Worker",
        template={"spec": {"containers": [{"name": "tensorflow", "livenessProbe": {"exec": {}}}]}},
    ),
)


def test_a_probe_that_failed_is_what_killed_the_task() -> None:
    killing = warning("Killing", "Container tensorflow failed liveness probe, will be restarted", age=2)
    unhealthy = warning("Unhealthy", "Liveness probe failed: no such lock", age=2)
    over = ended(137)
    over["containerStatuses"][0]["state"]["terminated"]["startedAt"] = stamp(ago(minutes=3))
    found = why(job(pod(status=over), events=(killing, unhealthy), status=FAILED, roles=PROBED))
    assert (found.causes[0].kind, found.causes[0].evidence[0].text) == ("probe", unhealthy.message)
    assert found.sentence == "the kubelet killed worker-0 because its liveness probe failed: no such lock"
    assert "livenessProbe" in found.causes[0].fix
    never = warning("Killing", "Stopping container tensorflow", age=2)
    same = why(job(pod(status=over), events=(never, unhealthy), status=FAILED, roles=PROBED))
    assert same.sentence == found.sentence
    silent = why(job(pod(status=over), events=(unhealthy,), status=FAILED, roles=PROBED))
    assert silent.causes[0].kind == "killed"


def test_a_probe_that_ended_an_earlier_run_did_not_kill_this_one() -> None:
    killing = warning("Killing", "Container tensorflow failed liveness probe, will be restarted", age=4)
    over = ended(137)
    over["containerStatuses"][0]["state"]["terminated"]["startedAt"] = stamp(ago(minutes=3))
    unhealthy = warning("Unhealthy", "Liveness probe failed: no such lock", age=4)
    found = why(job(pod(status=over), events=(killing, unhealthy), status=FAILED, roles=PROBED))
    assert found.causes[0].kind == "killed"


TAKEN = {
    "EvictionByEvictionAPI": "drained",
    "PreemptionByScheduler": "preempted",
    "DeletionByTaintManager": "node-lost",
    "DeletionByPodGC": "node-lost",
}


@pytest.mark.parametrize(("reason", "kind"), TAKEN.items())
def test_a_pod_that_was_taken_away_is_replaced_at_no_cost(reason: str, kind: str) -> None:
    event = warning("Preempted", "Preempted by pod 1234 on node n1")
    answer = why(job(pod(status=failed("", DisruptionTarget=reason)), events=(event,)))
    assert answer.causes[0].kind == kind
    assert "costs no retry" in answer.causes[0].fix
    assert answer.causes[0].evidence[0].text == event.message


def test_a_task_that_runs_again_is_fine_and_its_earlier_end_is_reported() -> None:
    memory = (Ending(task="worker-0", attempt=1, exit_code=137, reason="OOMKilled", finished=ago(minutes=9)),)
    pods = (pod("worker-0", running()), pod("worker-1", running()))
    answer = why(job(*pods, status=status(condition("Running"), endings=memory)))
    assert answer.code == 0
    assert [(cause.kind, cause.is_past) for cause in answer.causes] == [("out-of-memory", True)]


def test_hours_later_the_job_remembers_what_its_pods_took_with_them() -> None:
    memory = (
        Ending(task="worker-1", attempt=1, exit_code=1, message="ValueError: first", finished=ago(hours=5)),
        Ending(task="worker-0", attempt=1, exit_code=1, message="KeyError: 'x'", finished=ago(hours=5)),
    )
    answer = why(job(status=status(condition("Failed"), failure=FAILED.failure, endings=memory)))
    assert (answer.code, answer.sentence) == (1, "worker-0 failed with KeyError: 'x'")
    assert [cause.tasks for cause in answer.causes] == [("worker-0",), ("worker-1",)]


def test_a_lost_peer_is_a_symptom_of_what_ended_the_peer() -> None:
    lost = (
        "tensorflow.python.framework.errors_impl.UnavailableError: failed to connect to all addresses; last error:"
        " UNKNOWN: /job:worker/replica:0/task:1"
    )
    pods = (pod("worker-0", ended(1, lost)), pod("worker-1", ended(1, "ValueError: bad data")))
    answer = why(job(*pods, status=FAILED))
    assert [cause.kind for cause in answer.causes] == ["program-error", "peers"]
    assert answer.sentence == "worker-1 failed with ValueError: bad data"
    assert "worker-0 cannot reach worker-1" in answer.causes[1].sentence


SURVIVED = 'Traceback (most recent call last):\n  File "/code/t.py", line 3, in load\nKeyError: 1\n'
LOST = "UNAVAILABLE: failed to connect to all addresses; last error: UNKNOWN: /job:worker/replica:0/task:1"


def test_a_peer_that_was_lost_for_a_moment_is_not_what_ended_the_program() -> None:
    answer = why(job(pod(status=ended(1, f"{LOST}\ntrying again\n{SURVIVED}")), status=FAILED))
    assert answer.sentence == "worker-0 failed with KeyError: 1 (/code/t.py:3)"


def test_an_exception_that_the_program_survived_is_not_what_ended_it_by_a_signal() -> None:
    text = f"{SURVIVED}F0000 00:00:1 11 service_agent.cc:70] Terminating process: {LOST}"
    answer = why(job(pod(status=ended(134, text)), status=FAILED))
    assert (answer.causes[0].kind, answer.sentence) == (
        "peers",
        "worker-0 cannot reach worker-1: no pod of worker-1 runs",
    )


def test_retries_that_are_used_up_show_the_last_three_endings() -> None:
    endings = tuple(
        Ending(task="worker-0", attempt=n, exit_code=1, message="KeyError: 1") for n in range(1, 5)
    )
    failure = Failure(cause="BackoffLimitExceeded", task="worker-0", exit_code=1, message="…")
    memory = status(condition("Failed"), failure=failure, endings=endings)
    answer = why(job(status=memory, spec={"runPolicy": {"backoffLimit": 3}}))
    assert [cause.kind for cause in answer.causes] == ["program-error", "retries"]
    assert "(3 allowed)" in answer.causes[1].sentence
    assert [quote.text for quote in answer.causes[1].evidence] == [
        f"worker-0, attempt {n}: failed, exit code 1" for n in (2, 3, 4)
    ]


def test_a_deadline() -> None:
    failure = Failure(cause="DeadlineExceeded", message="Job train has failed because it was active longer …")
    memory = status(
        condition("Failed"), condition("Waiting", "ImagePull", "worker-0: not found"), failure=failure
    )
    answer = why(job(status=memory, spec={"runPolicy": {"activeDeadlineSeconds": 7200}}))
    assert (answer.code, answer.causes[0].kind) == (1, "deadline")
    assert answer.sentence == "it ran longer than its deadline of 2h00m; it had waited: worker-0: not found"


def test_a_failed_job_of_which_nothing_is_left_is_unknown() -> None:
    answer = why(job(status=status(condition("Failed"))))
    assert (answer.code, answer.causes) == (4, ())


def test_without_endings_the_words_of_the_failure_are_read() -> None:
    text = "TFJob ml/train has failed because 1 Worker failed: worker-0 exited with code 1: x\nKeyError: 'y'"
    failure = Failure(cause="TaskFailed", task="worker-0", exit_code=1, message=text)
    assert (
        why(job(status=status(condition("Failed"), failure=failure))).sentence
        == "worker-0 failed with KeyError: 'y'"
    )
    answer = why(
        job(
            status=status(condition("Failed", "TFJobFailed", "TFJob train has failed because of the others."))
        )
    )
    assert (answer.code, answer.causes[0].kind) == (1, "failed")


def test_a_log_is_read_where_the_kubelet_kept_no_last_words() -> None:
    logs = {"worker-0": LogTail("KeyError: 'x'", ago(minutes=1))}
    assert (
        why(job(pod(status=ended(1)), status=FAILED, logs=logs)).sentence
        == "worker-0 failed with KeyError: 'x'"
    )


def test_the_log_of_the_present_run_does_not_tell_of_the_end_of_the_one_before() -> None:
    again = running()
    last = crashing(1, "KeyError: 'x'")["containerStatuses"][0]["lastState"]
    again["containerStatuses"][0]["lastState"] = last
    logs = {"worker-0": LogTail("a long line of the present run\n" * 9, ago(minutes=1))}
    answer = why(job(pod("worker-0", again), pod("worker-1", running()), logs=logs))
    assert [(cause.sentence, cause.is_past) for cause in answer.causes] == [
        ("worker-0 failed with KeyError: 'x'", True)
    ]


def test_a_run_on_this_machine_gets_a_fix_for_this_machine() -> None:
    answer = why(local("ModuleNotFoundError: No module named 'pandas'"))
    assert (answer.code, answer.causes[0].kind) == (1, "missing-module")
    assert "--python" in answer.causes[0].fix
    assert answer.looked_at == ("the record of the run",)
    killed = msgspec.structs.replace(local("", 137, reason="OOMKilled"), roles=(limited("100Mi"),))
    assert why(killed).causes[0].fix == "job file: `memory: 150Mi`, or smaller batches"
    of_script = msgspec.structs.replace(killed, given_as="script")
    assert why(of_script).causes[0].fix == "`--memory 150Mi`, or smaller batches"


def test_a_job_that_succeeded_needs_no_explanation() -> None:
    """Not even an earlier attempt that failed is explained."""
    answer = why(job(pod(status=crashing(1, "KeyError")), status=status(condition("Succeeded"))))
    assert (answer.code, answer.causes) == (0, ())
    assert answer.sentence == "train has succeeded; there is nothing to explain"


@pytest.mark.parametrize(("given_up", "failed", "kinds"), [(0, 1, ["program-error"]), (1, 1, []), (0, 0, [])])
def test_of_a_job_that_succeeded_only_permanent_failures_are_reported(
    given_up: int, failed: int, kinds: list[str]
) -> None:
    """The job's pods are gone: worker-1 failed, or was replaced, or was restarted in place and then succeeded."""
    ended = status(
        condition("Succeeded"),
        endings=(Ending(task="worker-1", attempt=1, exit_code=1, message="ValueError: bad batch"),),
        tasks={"Worker": RoleMemory(attempts={"1": given_up})} if given_up else {},
        replica_statuses={"Worker": RoleStatus(succeeded=2 - failed, failed=failed)},
    )
    answer = why(job(status=ended))
    assert ([cause.kind for cause in answer.causes], answer.code) == (kinds, 0)


# --- pods that the operator ended in place


def test_a_crash_loop_that_ended_with_its_job_is_explained_by_its_last_run() -> None:
    last = {
        "exitCode": 1,
        "reason": "Error",
        "message": "ValueError: no data",
        "finishedAt": stamp(ago(minutes=1)),
    }
    crashed = ended_in_place(NEVER_BEGUN, restartCount=3, lastState={"terminated": last})
    failed = status(
        condition("Failed"), failure=Failure(cause="BackoffLimitExceeded", task="worker-0", exit_code=1)
    )
    answer = why(job(pod(status=crashed, activeDeadlineSeconds=1), status=failed))
    assert "ValueError: no data" in answer.sentence
    assert "deadline" not in answer.sentence


def test_a_task_whose_sidecars_were_ended_needs_no_explanation() -> None:
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": stamp(ago(minutes=1))}}
    proxy = {"name": "istio-proxy", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    over = pod(status=ended_in_place(done, proxy), activeDeadlineSeconds=1)
    assert why(job(over, status=status(condition("Succeeded")))).state == "fine"
    going_on = why(job(over, pod("worker-1", running()), status=status(condition("Running"))))
    assert (going_on.state, going_on.causes) == ("fine", ())


def test_a_program_that_has_just_ended_well_is_done_before_its_pod_is() -> None:
    done = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": stamp(ago(minutes=1))}}
    lagging = {**ended_in_place(done), "phase": "Running", "reason": "", "message": ""}
    answer = why(
        job(
            pod(status=lagging, restartPolicy="OnFailure"),
            pod("worker-1", running()),
            status=status(condition("Running")),
        )
    )
    assert answer.state == "fine", answer.sentence


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            42,
            "worker-0 saved a checkpoint and ended with code 42, as TensorFlow's PreemptionCheckpointHandler does:"
            " worker-1 was evicted or deleted",
        ),
        (1, "worker-0 failed because worker-1 was evicted or deleted"),
    ],
)
def test_a_task_that_failed_since_another_one_was_taken_away_is_not_at_fault(
    code: int, sentence: str
) -> None:
    lost = Ending(
        task="worker-0",
        attempt=1,
        exit_code=code,
        reason="PeerLost",
        peer="worker-1",
        finished=ago(minutes=1),
    )
    answer = why(job(status=status(condition("Restarting"), endings=(lost,))))
    (cause,) = answer.causes
    assert (cause.kind, cause.sentence) == ("peer-lost", sentence)
    assert cause.fix == "all tasks start again together, and that costs no retry"


def test_a_task_that_was_stopped_because_it_hung_keeps_its_last_line() -> None:
    hung = Ending(task="worker-0", attempt=1, reason="Stalled", message="Epoch 3/10", finished=ago(minutes=1))
    both = (pod("worker-0", running()), pod("worker-1", running()))
    answer = why(job(*both, status=status(condition("Restarting"), endings=(hung,))))
    (cause,) = answer.causes
    assert (answer.code, cause.kind, cause.is_past) == (0, "stalled", True)
    assert cause.evidence[0].text == "Epoch 3/10"
