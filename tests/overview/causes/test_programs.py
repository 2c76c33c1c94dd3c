"""Ends of programs as beginners cause them: the output of Python and TensorFlow, and an expert's explanation.

`tests/e2e/test_run_why.py` runs such programs; here are their last words.
"""

from typing import Any

import pytest
from msgspec import Struct

from tests.overview.situations import condition as made
from tests.overview.situations import ended as end
from tests.overview.situations import job, local, pod, status, why
from tfyard.model import Failure, Role
from tfyard.overview.evidence import Evidence

HEADER = "Traceback (most recent call last):\n"
HANDLED = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
CAUSED = "\n\nThe above exception was the direct cause of the following exception:\n\n"


def frame(line: int, function: str = "<module>", file: str = "/code/train.py") -> str:
    return f'  File "{file}", line {line}, in {function}\n    some(code)\n    ^^^^^^^^^^\n'


def raised(text: str, *lines: int) -> str:
    return HEADER + "".join(map(frame, lines or (3,))) + text


KERAS = frame(122, "error_handler", "/usr/lib/python3.11/site-packages/keras/src/utils/traceback_utils.py")
POOL = frame(774, "get", "/usr/lib/python3.11/multiprocessing/pool.py")
RESOLVER = frame(
    53, "_load", "/usr/lib/python3/dist-packages/tensorflow/python/distribute/tfconfig_cluster_resolver.py"
)
IN_LAYER = """ValueError: Exception encountered when calling Sequential.call().

\x1b[1mInput 0 of layer 'dense' is incompatible with the layer: expected axis -1 to have value 4\x1b[0m

Arguments received by Sequential.call():
  • inputs=tf.Tensor(shape=(None, 5), dtype=float32)
  • training=True"""
OP = "tensorflow.python.framework.errors_impl"
NODE = "{{function_node __wrapped__IteratorGetNext_output_types_1_device_/job:localhost/task:0/device:CPU:0}}"
SEGFAULT = """Fatal Python error: Segmentation fault

Current thread 0x00007f5b849c4b80 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 519 in string_at
  File "/code/train.py", line 4 in crash
  File "/code/train.py", line 9 in <module>"""
CHECK = "F0000 00:00:1794803145.7 11 tensor.cc:9] Check failed: dtype() == expected (1 vs. 2)"
KILLED_CHILD = (
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the"
    " future was running or pending."
)
DOWNLOAD = "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>"
TOO_MUCH = (
    "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 256. TiB for an array with shape (9,)"
)
INFERRED = (
    "Could not automatically infer the output shape / dtype of 'mine' (of type Mine). Error encountered:"
)
CONFIGURATION = "ValueError: Bad configuration:\n\n  - learning_rate: must be > 0\n  - batch: must be an int"


class Said(Struct, frozen=True):
    text: str
    kind: str
    sentence: str
    fix: str = ""
    code: int = 1


ENDS = {
    "the error inside a layer": Said(
        HEADER + frame(5) + KERAS + IN_LAYER,
        "program-error",
        "worker-0 failed with ValueError: Input 0 of layer 'dense' is incompatible with the layer: expected axis"
        " -1 to have value 4 (/code/train.py:5)",
    ),
    "an operation without its internal name": Said(
        raised(
            f"{OP}.InvalidArgumentError: cannot compute Sub as input #1 is a float tensor [Op:Sub] name: "
        ),
        "program-error",
        "worker-0 failed with InvalidArgumentError: cannot compute Sub as input #1 is a float tensor"
        " (/code/train.py:3)",
    ),
    "a record file": Said(
        raised(
            f"{OP}.NotFoundError: {NODE} /data/a.tfrecord; No such file or directory [Op:IteratorGetNext] name: "
        ),
        "missing-file",
        "worker-0 did not find the file /data/a.tfrecord (/code/train.py:3)",
        "`volumes:`",
    ),
    "a file of NumPy": Said(
        raised("FileNotFoundError: data/train.csv not found."),
        "missing-file",
        "worker-0 did not find the file data/train.csv (/code/train.py:3)",
        "`code:`",
    ),
    "a model": Said(
        raised(
            "ValueError: File not found: filepath=/models/best.keras. Please ensure the file is accessible"
        ),
        "missing-file",
        "worker-0 did not find the file /models/best.keras (/code/train.py:3)",
    ),
    "a checkpoint": Said(
        raised(
            f"{OP}.NotFoundError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files"
            " for /out/ckpt-12"
        ),
        "missing-file",
        "worker-0 did not find the file /out/ckpt-12 (/code/train.py:3)",
    ),
    "the end of the data": Said(
        raised(f"{OP}.OutOfRangeError: {NODE} End of sequence [Op:IteratorGetNext] name: ")
        + HANDLED
        + raised("StopIteration", 9, 7),
        "end-of-data",
        "worker-0 asked for more data than its dataset has (/code/train.py:7)",
        ".repeat()",
    ),
    "a TF_CONFIG that is no JSON": Said(
        HEADER
        + frame(4)
        + RESOLVER
        + "json.decoder.JSONDecodeError: Expecting property name: line 1 column 2",
        "tf-config",
        "worker-0 cannot use TF_CONFIG: JSONDecodeError: Expecting property name: line 1 column 2 (/code/",
        "tfyard sets TF_CONFIG",
    ),
    "a TF_CONFIG of another task": Said(
        raised("ValueError: The `task_id` 3 exceeds the maximum id of worker."),
        "tf-config",
        "worker-0 cannot use TF_CONFIG: ValueError: The `task_id` 3 exceeds the maximum id of worker.",
        "tfyard sets TF_CONFIG",
    ),
    "parameter servers that the strategy does not know": Said(
        raised("ValueError: There is no id for task_type 'ps'"),
        "strategy",
        "worker-0: MultiWorkerMirroredStrategy has no parameter servers, and the job has some (/code/train.py:3)",
        "job file: without `ps:`",
    ),
    "a strategy without its parameter servers": Said(
        raised("ValueError: There must be at least one ps."),
        "strategy",
        "worker-0: ParameterServerStrategy needs parameter servers, and the job has none (/code/train.py:3)",
        "job file: `ps: 1`",
    ),
    "a child process that was killed": Said(
        raised(KILLED_CHILD),
        "child-killed",
        "worker-0 failed because a child process of it was killed (/code/train.py:3)",
        "`memory:`",
    ),
    "a child process that failed": Said(
        raised("ModuleNotFoundError: No module named 'nosuch'", 1)
        + "\n"
        + raised(
            "subprocess.CalledProcessError: Command '['python', 'x.py']' returned non-zero exit status 1."
        ),
        "missing-module",
        "worker-0 did not find the module nosuch",
        "`image:`",
    ),
    "an error that TensorFlow's message embeds": Said(
        raised(
            f"{OP}.InvalidArgumentError: {NODE} TypeError: `generator` yielded x\n{HEADER}{POOL}ValueError: 'x'"
        )
        + f"{CAUSED}{HEADER}{POOL}TypeError: `generator` yielded x\n\n\n\t [[{{{{node PyFunc}}}}]] [Op:Next]",
        "program-error",
        "worker-0 failed with TypeError: `generator` yielded x (/code/train.py:3)",
    ),
    "the line in the process of a pool": Said(
        f'multiprocessing.pool.RemoteTraceback: \n"""\n{raised("IndexError: list index out of range", 7)}\n"""'
        + CAUSED
        + HEADER
        + frame(11)
        + POOL
        + "IndexError: list index out of range",
        "program-error",
        "worker-0 failed with IndexError: list index out of range (/code/train.py:7)",
    ),
    "an error while another is handled": Said(
        raised("ValueError: the rate must be positive", 9) + HANDLED + raised("AttributeError: no 'file'", 4),
        "program-error",
        "worker-0 failed with AttributeError: no 'file' (/code/train.py:4), while it handled ValueError: the rate"
        " must be positive (/code/train.py:9)",
    ),
    "an error that is the cause of another": Said(
        raised("KeyError: 'b'", 2) + CAUSED + raised("RuntimeError: no dataset b", 5),
        "program-error",
        "worker-0 failed with RuntimeError: no dataset b (/code/train.py:5), because of KeyError: 'b'"
        " (/code/train.py:2)",
    ),
    "an error of a library while another is handled": Said(
        f"{HEADER}{KERAS}KeyError: 'b'{HANDLED}{raised('RuntimeError: no dataset b', 5)}",
        "program-error",
        "worker-0 failed with RuntimeError: no dataset b (/code/train.py:5)",
    ),
    "a message of several lines": Said(
        raised(CONFIGURATION),
        "program-error",
        "worker-0 failed with ValueError: Bad configuration: - learning_rate: must be > 0 - batch: must be an int"
        " (/code/train.py:3)",
    ),
    "a message that goes on in the next line": Said(
        raised("AssertionError: expected two,\ngot [1]"),
        "program-error",
        "worker-0 failed with AssertionError: expected two, got [1] (/code/train.py:3)",
    ),
    "the error inside a layer of one's own": Said(
        raised(f"AttributeError: {INFERRED}\n\n'Mine' object has no attribute 'kernel'"),
        "program-error",
        "worker-0 failed with AttributeError: 'Mine' object has no attribute 'kernel' (/code/train.py:3)",
    ),
    "an error among the last lines": Said(
        "step 1 loss 0.5\nERROR: accuracy below threshold\nbye",
        "program-error",
        "worker-0 ended with exit code 4: ERROR: accuracy below threshold",
        code=4,
    ),
    "a variable of the environment": Said(
        HEADER + frame(2) + '  File "<frozen os>", line 679, in __getitem__\n' + "KeyError: 'BUCKET'",
        "missing-variable",
        "worker-0: the environment variable BUCKET is not set (/code/train.py:2)",
        "job file: `env: {BUCKET: …}`",
    ),
    "a download": Said(
        raised(DOWNLOAD),
        "unreachable",
        "worker-0 failed with URLError: <urlopen error [Errno -2] Name or service not known> (/code/train.py:3)",
        "a server outside of the job",
    ),
    "more memory than there is": Said(
        raised(TOO_MUCH),
        "out-of-memory",
        "worker-0 asked for more memory than there is: Unable to allocate 256. TiB",
        "`memory:`",
    ),
    "memory without a number": Said(
        raised("MemoryError"),
        "out-of-memory",
        "worker-0 asked for more memory than there is (/code/train.py:3)",
    ),
    "an interrupt": Said(
        raised("KeyboardInterrupt"), "stopped", "worker-0 ended by SIGINT: it was interrupted", code=130
    ),
    "a crash with the line": Said(
        SEGFAULT,
        "crash",
        "compiled code; often libraries that do not fit together (/code/train.py:4)",
        code=139,
    ),
    "a crash without the line": Said(
        "step 1", "crash", "worker-0 ended by SIGSEGV", "PYTHONFAULTHANDLER", code=139
    ),
    "a check of TensorFlow": Said(
        f"{CHECK}\n*** Check failure stack trace: ***\n    @     0x7f\n    @     0x8f",
        "abort",
        "worker-0 ended by SIGABRT: a library gave up: Check failed: dtype() == expected (1 vs. 2)",
        code=134,
    ),
    "a kill after an error that was survived": Said(
        raised("KeyError: 'x'") + "\ntraining goes on\n", "killed", "worker-0 ended by SIGKILL", code=137
    ),
    "a kill after a module that was not needed": Said(
        raised("ModuleNotFoundError: No module named 'x'") + "\ntraining\n", "killed", "SIGKILL", code=137
    ),
    "an error long before the end": Said(
        "No space left on device\n" + "step\n" * 60 + "bye", "program-error", "exit code 3: bye", code=3
    ),
    "an error on the way out of which a library gives up": Said(
        raised("KeyError: 'x'") + "\nterminate called without an active exception",
        "program-error",
        "worker-0 failed with KeyError: 'x' (/code/train.py:3)",
        code=134,
    ),
    "flags of absl": Said(
        "FATAL Flags parsing error: flag --data=None: Flag --data must have a value other than None.\n"
        "Pass --helpshort or --helpfull to see help on flags.",
        "program-error",
        "worker-0 ended with exit code 1: FATAL Flags parsing error: flag --data=None: Flag --data must have",
    ),
    "a GPU that was full for a moment": Said(
        "failed to allocate 2.00GiB from device: CUDA_ERROR_OUT_OF_MEMORY\n" + raised("KeyError: 'x'"),
        "program-error",
        "worker-0 failed with KeyError: 'x' (/code/train.py:3)",
    ),
}


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS)
def test_the_end_of_a_program_is_explained_as_an_expert_would(case: Said) -> None:
    failure = Failure(cause="TaskFailed", task="worker-0", exit_code=case.code)
    roles = (Role(name="Worker", replicas=2), Role(name="PS", replicas=1))
    memory = status(made("Failed"), failure=failure)
    answer = why(job(pod(status=end(case.code, case.text)), status=memory, roles=roles))
    assert (answer.code, answer.causes[0].kind) == (1, case.kind), answer.sentence
    assert case.sentence in answer.sentence
    assert not case.sentence.endswith(")") or answer.sentence.endswith(case.sentence)
    assert case.fix in answer.causes[0].fix
    assert "\n" not in answer.sentence


def test_a_program_that_is_not_in_the_folder_of_a_run_is_named_as_the_job_file_does() -> None:
    path = "/home/a/.tfyard/runs/t-20261116-090909/work/t-worker-0/tensorflow/task.py"
    answer = why(local(f"python: can't open file '{path}': [Errno 2] No such file or directory", 2))
    assert answer.sentence == "there is no program task.py for worker-0"
    assert answer.causes[0].fix == "job file: `code: .` brings your code; or check the path in `run:`"


def fixes(text: str, **fields: Any) -> str:
    evidence: Evidence = local(text, **fields)
    return why(evidence).causes[0].fix


def test_fixes_of_runs_on_this_machine() -> None:
    assert "`code: .`" in fixes(raised("ModuleNotFoundError: No module named 'mymodel'"))
    relative = fixes(raised("FileNotFoundError: [Errno 2] No such file or directory: 'data/x.csv'"))
    assert relative == "relative paths begin in the folder of `code:`, without it in an empty one"
    absolute = fixes(raised("FileNotFoundError: [Errno 2] No such file or directory: '/data/x.csv'"))
    assert absolute == "check the path; job file: `volumes:` puts a folder there"
    assert "--env BUCKET=…" in fixes(ENDS["a variable of the environment"].text)
    assert "--env PYTHONFAULTHANDLER=1" in fixes("", exit_code=139)
