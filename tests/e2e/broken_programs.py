"""Programs that fail, as beginners write them, and what `tfyard why` says of each."""

from typing import Any

from msgspec import Struct

AS_NOBODY = "import os\nif os.geteuid() == 0:\n    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
CLOSE = "import os; os.chmod('/out', 0o555)\n"
OUT: dict[str, Any] = {"volumes": {"out": {"claim": "results", "at": "/out"}}}
READ_ONLY: dict[str, Any] = {"volumes": {"out": {"claim": "results", "at": "/out", "readOnly": True}}}


OVER_USR: dict[str, Any] = {"run": "/bin/true", "volumes": {"out": {"emptyDir": {}, "at": "/usr"}}}
DEPRECATED = "import sys, warnings; warnings.warn('old is deprecated', DeprecationWarning); sys.exit(42)"
LARGE = "import time; x = bytearray(400_000_000)"
"""It stays for a while: where there are no control groups, memory is looked at four times a second."""


class Broken(Struct, frozen=True):
    """A program, the words of its job file, and what is said of its end."""

    when: str
    """What happens, in words."""
    program: str
    kind: str
    sentence: str
    words: dict[str, Any] = {}
    fix: str = ""


PROGRAMS = (
    Broken(
        "a module that is not installed",
        "import panda",
        "missing-module",
        (
            "worker-0 did not find the module panda: the Python that runs the tasks does not have "
            "it (…/task.py:1)"
        ),
        fix=(
            "name the interpreter that has it with --python, or activate its environment; if it is "
            "your own code, its file is missing beside the program"
        ),
    ),
    Broken(
        "an exception in a function of the program",
        "import json\ndef load():\n    json.loads('{')\nload()",
        "program-error",
        "worker-0 failed with JSONDecodeError: … (…/task.py:3)",
    ),
    Broken(
        "a file that does not exist",
        "open('/nowhere/x.csv')",
        "missing-file",
        "worker-0 did not find the file /nowhere/x.csv (…/task.py:1)",
        fix="check the path; job file: `volumes:` puts a folder there",
    ),
    Broken(
        "`sys.exit(5)` without a word",
        "import sys; sys.exit(5)",
        "program-error",
        "worker-0 ended with exit code 5, and said nothing about the cause",
    ),
    Broken(
        "a library that aborts",
        "import os; os.abort()",
        "abort",
        "worker-0 ended by SIGABRT: a library gave up",
        fix="--env PYTHONFAULTHANDLER=1 prints the line at which it crashes",
    ),
    Broken(
        "a segmentation fault",
        "import os; os.kill(os.getpid(), 11)",
        "crash",
        ("worker-0 ended by SIGSEGV: a crash in compiled code; often libraries that do not fit together"),
        fix="--env PYTHONFAULTHANDLER=1 prints the line at which it crashes",
    ),
    Broken(
        "a program that is killed by SIGKILL",
        "import os; os.kill(os.getpid(), 9)",
        "killed",
        (
            "worker-0 ended by SIGKILL: by a person, the node, or because memory ran out outside "
            "of its own limit"
        ),
    ),
    Broken(
        "a full disk",
        "print('x' * 99999, file=open('/dev/full', 'w'))",
        "no-space",
        "worker-0 ran out of disk space (…/task.py:1)",
        fix="free some space",
    ),
    Broken(
        "a file that the user may not read",
        f"{AS_NOBODY}open('/proc/1/mem')",
        "permission",
        "worker-0 may not write or read /proc/1/mem (…/task.py:4)",
    ),
    Broken(
        "a volume that the user may not write to",
        f"{CLOSE}{AS_NOBODY}open('/out/x', 'w')",
        "volume-not-writable",
        "worker-0 may not write to its volume at /out (…/task.py:5)",
        OUT,
    ),
    Broken(
        "a volume that is mounted read-only",
        "open('/out/x', 'w')",
        "volume-not-writable",
        "worker-0 may not write to /out: it is mounted read-only (…/task.py:1)",
        READ_ONLY,
        fix="job file: its volume without `readOnly: true`; or write to another one",
    ),
    Broken(
        "a program above its memory limit",
        f"{LARGE}; time.sleep(60)",
        "out-of-memory",
        ("worker-0 used more than the memory limit of 150Mi, and the kernel killed it (OOMKilled)"),
        {"memory": "150Mi"},
        fix="job file: `memory: 225Mi`, or smaller batches",
    ),
    Broken(
        "a command that does not exist",
        "",
        "command",
        "worker-0 cannot start: `pyhton` is not on this machine",
        {"run": "pyhton task.py"},
        fix="job file: `run:`",
    ),
    Broken(
        "a file of the code that is not executable",
        "",
        "command",
        "worker-0 cannot start: `./task.py` may not be executed",
        {"run": ["./task.py"]},
        fix=(
            "make it executable in the folder of the code: `chmod +x task.py`; or run it by `python` or `sh`"
        ),
    ),
    Broken(
        "`exit 127` in a script",
        "",
        "command",
        "worker-0 ended with exit code 127: a shell's word for a command that was not found",
        {"run": "exit 127"},
        fix="look which command of the script it is, or which `exit`: the log does not name it",
    ),
    Broken(
        "an environment that is too large to start a program",
        "",
        "command",
        ("worker-0 cannot start: its arguments and environment are larger than Linux starts a program with"),
        {"env": {"LONG": "x" * 200_000}},
        fix="put long values into a file, and give its path",
    ),
    Broken(
        "a volume over /usr",
        "",
        "command",
        "worker-0 cannot start: a volume is mounted over /usr, and hides the programs there",
        OVER_USR,
        fix="mount it at a path of its own, instead of `/usr`",
    ),
    Broken(
        "exit code 42 after a deprecation warning",
        DEPRECATED,
        "program-error",
        "worker-0 ended with exit code 42, and said nothing about the cause",
    ),
    Broken(
        "a run that is longer than its deadline",
        "import time; time.sleep(60)",
        "deadline",
        "it ran longer than its deadline of 1s",
        {"deadline": "1s"},
        fix="job file: a longer `deadline:`",
    ),
    Broken(
        "a program that hangs, and has used up its retries",
        "import time; print('step 1', flush=True); time.sleep(600)",
        "stalled",
        "worker-0: its program hung, and was stopped: it printed no line for as long as `stall` allows",
        words={"stall": {"after": "1s", "then": "restart"}, "retries": 0},
        fix="when it hangs again, see what the programs do: `tfyard why … --stacks`",
    ),
)


KILL = "import os; os.kill(os.getpid(), 9)"
POOL = """
from concurrent.futures import ProcessPoolExecutor
def work(item):
    {work}
if __name__ == "__main__":
    with ProcessPoolExecutor(1) as pool:
        list(pool.map(work, [1]))
"""
CHAIN = """
def load(name):
    try:
        return {}[name]
    except KeyError as problem:
        raise RuntimeError("no dataset") %s
load("x")
"""
CLEANUP = """
class Writer:
    def __enter__(self): return self
    def __exit__(self, *_): self.file.close()
with Writer():
    raise ValueError("bad rate")
"""
THREAD = """
import threading
def feed():
    raise RuntimeError("queue is closed")
thread = threading.Thread(target=feed)
thread.start(); thread.join()
raise SystemExit(3)
"""
LOGGED = """
import logging, os
try:
    {}["x"]
except KeyError:
    logging.exception("survived")
os.kill(os.getpid(), 9)
"""
CRASH = "import ctypes\ndef crash():\n    ctypes.string_at(0)\ncrash()"
BEGINNERS = (
    Broken(
        "`sys.exit` with a message",
        "import sys; sys.exit('config.json: no rate')",
        "program-error",
        "worker-0 ended with exit code 1: config.json: no rate",
    ),
    Broken(
        "an exception in a thread",
        THREAD,
        "program-error",
        "worker-0 failed with RuntimeError: queue is closed (…/task.py:4)",
    ),
    Broken(
        "an exception while another is handled",
        CHAIN % "",
        "program-error",
        (
            "worker-0 failed with RuntimeError: no dataset (…/task.py:6), while it handled "
            "KeyError: 'x' (…/task.py:4)"
        ),
    ),
    Broken(
        "an exception that another caused",
        CHAIN % "from problem",
        "program-error",
        (
            "worker-0 failed with RuntimeError: no dataset (…/task.py:6), because of KeyError: 'x' "
            "(…/task.py:4)"
        ),
    ),
    Broken(
        "an exception in a clean-up",
        CLEANUP,
        "program-error",
        (
            "worker-0 failed with AttributeError: 'Writer' object has no attribute 'file' "
            "(…/task.py:4), while it handled ValueError: bad rate (…/task.py:6)"
        ),
    ),
    Broken(
        "a message with colours and other alphabets",
        "raise ValueError('Größe \\x1b[31m数据')",
        "program-error",
        "worker-0 failed with ValueError: Größe 数据 (…/task.py:1)",
    ),
    Broken(
        "a message of several lines",
        "raise ValueError('wrong:\\n  - rate\\n  - size')",
        "program-error",
        "worker-0 failed with ValueError: wrong: - rate - size (…/task.py:1)",
    ),
    Broken(
        "KeyboardInterrupt in the program",
        "raise KeyboardInterrupt",
        "stopped",
        "worker-0 ended by SIGINT: it was interrupted, as by Ctrl-C",
    ),
    Broken(
        "a crash in compiled code",
        CRASH,
        "crash",
        ("worker-0 ended by SIGSEGV: a crash in compiled code; often libraries that do not fit together"),
        fix="--env PYTHONFAULTHANDLER=1 prints the line at which it crashes",
    ),
    Broken(
        "an instruction that the processor does not have",
        "import os; os.kill(os.getpid(), 4)",
        "illegal-instruction",
        "worker-0 ended by SIGILL: its TensorFlow is built for another processor",
        fix="use an image for the node's processor, or nodes with AVX: `nodeSelector:`",
    ),
    Broken(
        "a crash, with PYTHONFAULTHANDLER",
        CRASH,
        "crash",
        (
            "worker-0 ended by SIGSEGV: a crash in compiled code; often libraries that do not fit "
            "together (…/task.py:3)"
        ),
        {"env": {"PYTHONFAULTHANDLER": "1"}},
    ),
    Broken(
        "SIGKILL after an exception that was logged",
        LOGGED,
        "killed",
        (
            "worker-0 ended by SIGKILL: by a person, the node, or because memory ran out outside "
            "of its own limit"
        ),
    ),
    Broken(
        "a child process of a pool that is killed",
        POOL.format(work=KILL),
        "child-killed",
        "worker-0 failed because a child process of it was killed (…/task.py:7)",
        fix="usually memory ran out: fewer or smaller processes",
    ),
    Broken(
        "an exception in a process of a pool",
        POOL.format(work="return [][item]"),
        "program-error",
        "worker-0 failed with IndexError: list index out of range (…/task.py:4)",
    ),
    Broken(
        "a variable that is not set",
        "import os; os.environ['BUCKET']",
        "missing-variable",
        "worker-0: the environment variable BUCKET is not set (…/task.py:1)",
        fix="--env BUCKET=…",
    ),
    Broken(
        "an array that is larger than the memory",
        "x = bytes(1 << 60)",
        "out-of-memory",
        "worker-0 asked for more memory than there is (…/task.py:1)",
        fix="smaller batches or arrays",
    ),
    Broken(
        "a server that does not answer",
        "import urllib.request as r; r.urlopen('http://127.0.0.1:1')",
        "unreachable",
        ("worker-0 failed with URLError: <urlopen error [Errno 111] Connection refused> (…/task.py:1)"),
        fix="a server outside of the job was not reached: check its name and this machine's network",
    ),
    Broken(
        "an argument that is missing",
        "import argparse as a; p = a.ArgumentParser(); p.add_argument('--lr', required=True); p.parse_args()",
        "program-error",
        ("worker-0 ended with exit code 2: task.py: error: the following arguments are required: --lr"),
    ),
    Broken(
        "a child process that does not find a module",
        "import subprocess as s, sys; s.run([sys.executable, '-c', 'import nosuch'], check=True)",
        "missing-module",
        ("worker-0 did not find the module nosuch: the Python that runs the tasks does not have it"),
        fix=(
            "name the interpreter that has it with --python, or activate its environment; if it is "
            "your own code, its file is missing beside the program"
        ),
    ),
    Broken(
        "a syntax error",
        "def f(:\n    pass",
        "program-error",
        "worker-0 failed with SyntaxError: invalid syntax (…/task.py:1)",
    ),
)

# --- of TensorFlow

IN_STRATEGY = """
import numpy as np, tensorflow as tf
strategy = {strategy}
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=1, verbose=2)
"""
PARAMETER_SERVER = """
import numpy as np, tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
role = resolver.task_type
if role != "chief":
    tf.distribute.Server(resolver.cluster_spec(), role, resolver.task_id, "grpc").join()
with tf.distribute.ParameterServerStrategy(resolver).scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(loss="mse", optimizer="sgd")
data = tf.data.Dataset.from_tensors((np.ones((4, 2)), np.ones((4, 1)))).repeat()
model.fit(data, epochs=1, steps_per_epoch=2, verbose=2)
"""
SHAPE = "@tf.function\ndef f(a):\n    return tf.reshape(a, [5])\nf(tf.ones([2, 2]))\n"
NAN = "tf.debugging.check_numerics(tf.math.log(tf.constant(-1.0)), 'loss')"
SERVER = """
import socket
import tensorflow as tf
with socket.create_server(("127.0.0.1", 0)) as taken:
    port = taken.getsockname()[1]
    tf.distribute.Server({"worker": [f"127.0.0.1:{port}"]}, job_name="worker", task_index=0)
"""
WITHOUT_SERVERS = """
import tensorflow as tf
tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
"""
MULTI_WORKER = "tf.distribute.MultiWorkerMirroredStrategy()"
OTHERS_CONFIG = """
import json, os
os.environ["TF_CONFIG"] = {config}
import tensorflow as tf
tf.distribute.MultiWorkerMirroredStrategy()
"""
LAYERS = """
import numpy as np, tensorflow as tf
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, activation="softmax")])
model.compile(loss="sparse_categorical_crossentropy", optimizer="sgd")
model.fit(np.ones((16, {width})), np.full((16,), {label}), verbose=0)
"""
GENERATOR = """
import tensorflow as tf
data = tf.data.Dataset.from_generator(lambda: iter([1, {last}]), output_signature=tf.TensorSpec((), tf.int32))
items = iter(data)
while True:
    next(items)
"""
IN_GRAPH = "@tf.function\ndef step(x):\n    return x.numpy()\nstep(tf.ones([2]))"
IMPORT = "import tensorflow as tf\n"
TENSORFLOW = (
    Broken(
        "ParameterServerStrategy without parameter servers",
        WITHOUT_SERVERS,
        "strategy",
        "…: ParameterServerStrategy needs parameter servers, and the job has none (…/task.py:3)",
        {"chief": 1, "worker": 1},
        fix="job file: `ps: 1`; or a program with MultiWorkerMirroredStrategy",
    ),
    Broken(
        "MultiWorkerMirroredStrategy with parameter servers",
        f"{IMPORT}{MULTI_WORKER}",
        "strategy",
        ("…: MultiWorkerMirroredStrategy has no parameter servers, and the job has some (…/task.py:2)"),
        {"worker": 1, "ps": 1, "success": "all-workers"},
        fix="job file: without `ps:`; or a program with ParameterServerStrategy",
    ),
    Broken(
        "a TF_CONFIG that is no JSON",
        OTHERS_CONFIG.format(config='"{1: 2}"'),
        "tf-config",
        "worker-0 cannot use TF_CONFIG: JSONDecodeError: … (…/task.py:5)",
        fix="tfyard sets TF_CONFIG for each task: remove it from `env:` and from the program",
    ),
    Broken(
        "a TF_CONFIG of another task",
        OTHERS_CONFIG.format(
            config='json.dumps({"cluster": {"worker": ["127.0.0.1:2"]}, "task":'
            ' {"type": "worker", "index": 3}})'
        ),
        "tf-config",
        "The `task_id` 3 exceeds the maximum id of worker",
        fix="tfyard sets TF_CONFIG for each task: remove it from `env:` and from the program",
    ),
    Broken(
        "data that does not fit a layer",
        LAYERS.format(width=5, label=0),
        "program-error",
        "expected axis -1 of input shape to have value 4",
    ),
    Broken(
        "labels that do not fit a loss",
        LAYERS.format(width=4, label=7),
        "program-error",
        "label value of 7 which is outside the valid range",
    ),
    Broken(
        "a dataset that is too short",
        GENERATOR.format(last=2),
        "end-of-data",
        "worker-0 asked for more data than its dataset has (…/task.py:6)",
        fix="`dataset.repeat()`, or fewer steps",
    ),
    Broken(
        "a generator of the wrong type",
        GENERATOR.format(last="'x'"),
        "program-error",
        "but the yielded element was x. (",
    ),
    Broken(
        "a record file that does not exist",
        f"{IMPORT}next(iter(tf.data.TFRecordDataset('/no/a')))",
        "missing-file",
        "worker-0 did not find the file /no/a (…/task.py:2)",
        fix="check the path; job file: `volumes:` puts a folder there",
    ),
    Broken(
        "a model that does not exist",
        f"{IMPORT}tf.keras.models.load_model('/m.keras')",
        "missing-file",
        "worker-0 did not find the file /m.keras (…/task.py:2)",
        fix="check the path; job file: `volumes:` puts a folder there",
    ),
    Broken(
        "`.numpy()` in a `tf.function`", f"{IMPORT}{IN_GRAPH}", "program-error", "has no attribute 'numpy' ("
    ),
    Broken(
        "Keras 3 under MultiWorkerMirroredStrategy",
        IN_STRATEGY.format(strategy="tf.distribute.MultiWorkerMirroredStrategy()"),
        "keras-3",
        (
            "…: Keras 3 does not train under MultiWorkerMirroredStrategy or "
            "ParameterServerStrategy (…/task.py:7)"
        ),
        {"worker": 2},
        fix="install tf_keras, and job file: `env: {TF_USE_LEGACY_KERAS: 1}`",
    ),
    Broken(
        "Keras 3 under ParameterServerStrategy",
        PARAMETER_SERVER,
        "keras-3",
        (
            "…: Keras 3 does not train under MultiWorkerMirroredStrategy or "
            "ParameterServerStrategy (…/task.py:11)"
        ),
        {"chief": 1, "worker": 1, "ps": 1},
        fix="install tf_keras, and job file: `env: {TF_USE_LEGACY_KERAS: 1}`",
    ),
    Broken(
        "a program for TensorFlow 1",
        "import tensorflow as tf\ntf.app.run()",
        "tensorflow-1",
        "worker-0 runs a program for TensorFlow 1 on TensorFlow 2 (…/task.py:2)",
        fix="job file: `tf1: true`, or --tf1",
    ),
    Broken(
        "a module of TensorFlow 1",
        "import tensorflow.contrib",
        "tensorflow-1",
        "worker-0 runs a program for TensorFlow 1 on TensorFlow 2 (…/task.py:1)",
        fix="job file: `tf1: true`, or --tf1",
    ),
    Broken(
        "a shape that does not fit, in a `tf.function`",
        f"import tensorflow as tf\n{SHAPE}",
        "program-error",
        "task.py:4)",
    ),
    Broken(
        "a tensor that is larger than the device",
        "import tensorflow as tf\ntf.zeros([1 << 44])",
        "gpu-memory",
        "worker-0 needs more memory than its GPU or device has (…/task.py:2)",
        fix="smaller batches; or `env: {TF_FORCE_GPU_ALLOW_GROWTH: true}` if tasks share a GPU",
    ),
    Broken(
        "a tensor that is not a number",
        f"import tensorflow as tf\n{NAN}",
        "nan-loss",
        "worker-0 stopped because the loss or a tensor is not a number (…/task.py:2)",
        fix="a smaller learning rate, gradient clipping, or check the data for NaN",
    ),
    Broken(
        "a port that another process has",
        SERVER,
        "address-in-use",
        "worker-0: its port … cannot be opened: usually another process has it (…/task.py:6)",
        fix="job file: another `port:`; with hostNetwork, two tasks of a node must not share one",
    ),
)
