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

    program: str
    kind: str
    sentence: str
    words: dict[str, Any] = {}


PROGRAMS = (
    Broken("import panda", "missing-module", "did not find the module panda"),
    Broken("import json\ndef load():\n    json.loads('{')\nload()", "program-error", "/task.py:3)"),
    Broken("open('/nowhere/x.csv')", "missing-file", "did not find the file /nowhere/x.csv"),
    Broken("import sys; sys.exit(5)", "program-error", "ended with exit code 5, and said nothing"),
    Broken("import os; os.abort()", "abort", "SIGABRT"),
    Broken("import os; os.kill(os.getpid(), 11)", "crash", "SIGSEGV"),
    Broken("import os; os.kill(os.getpid(), 9)", "killed", "SIGKILL"),
    Broken("print('x' * 99999, file=open('/dev/full', 'w'))", "no-space", "ran out of disk space"),
    Broken(f"{AS_NOBODY}open('/proc/1/mem')", "permission", "may not write or read /proc/1/mem"),
    Broken(f"{CLOSE}{AS_NOBODY}open('/out/x', 'w')", "volume-not-writable", "its volume at /out", OUT),
    Broken("open('/out/x', 'w')", "volume-not-writable", "/out: it is mounted read-only", READ_ONLY),
    Broken(f"{LARGE}; time.sleep(60)", "out-of-memory", "limit of 150Mi", {"memory": "150Mi"}),
    Broken("", "command", "`pyhton` is not on this machine", {"run": "pyhton task.py"}),
    Broken("", "command", "`./task.py` may not be executed", {"run": ["./task.py"]}),
    Broken(
        "", "command", "exit code 127: a shell's word for a command that was not found", {"run": "exit 127"}
    ),
    Broken("", "command", "its arguments and environment are larger", {"env": {"LONG": "x" * 200_000}}),
    Broken("", "command", "a volume is mounted over /usr, and hides", OVER_USR),
    Broken(DEPRECATED, "program-error", "ended with exit code 42, and said nothing about the cause"),
    Broken("import time; time.sleep(60)", "deadline", "longer than its deadline of 1s", {"deadline": "1s"}),
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
    Broken("import sys; sys.exit('config.json: no rate')", "program-error", "exit code 1: config.json: no rate"),
    Broken(THREAD, "program-error", "RuntimeError: queue is closed ("),
    Broken(CHAIN % "", "program-error", "task.py:6), while it handled KeyError: 'x' ("),
    Broken(CHAIN % "from problem", "program-error", "task.py:6), because of KeyError: 'x' ("),
    Broken(CLEANUP, "program-error", "while it handled ValueError: bad rate ("),
    Broken("raise ValueError('Größe \\x1b[31m数据')", "program-error", "ValueError: Größe 数据 ("),
    Broken("raise ValueError('wrong:\\n  - rate\\n  - size')", "program-error", "wrong: - rate - size ("),
    Broken("raise KeyboardInterrupt", "stopped", "SIGINT: it was interrupted"),
    Broken(CRASH, "crash", "SIGSEGV"),
    Broken("import os; os.kill(os.getpid(), 4)", "illegal-instruction", "SIGILL"),
    Broken(CRASH, "crash", "task.py:3)", {"env": {"PYTHONFAULTHANDLER": "1"}}),
    Broken(LOGGED, "killed", "SIGKILL"),
    Broken(POOL.format(work=KILL), "child-killed", "a child process of it was killed ("),
    Broken(POOL.format(work="return [][item]"), "program-error", "IndexError: list index out of range ("),
    Broken("import os; os.environ['BUCKET']", "missing-variable", "environment variable BUCKET is not set"),
    Broken("x = bytes(1 << 60)", "out-of-memory", "asked for more memory than there is ("),
    Broken("import urllib.request as r; r.urlopen('http://127.0.0.1:1')", "unreachable", "Connection refused> ("),
    Broken("import argparse as a; p = a.ArgumentParser(); p.add_argument('--lr', required=True); p.parse_args()",
           "program-error", "the following arguments are required: --lr"),
    Broken("import subprocess as s, sys; s.run([sys.executable, '-c', 'import nosuch'], check=True)",
           "missing-module", "did not find the module nosuch"),
    Broken("def f(:\n    pass", "program-error", "SyntaxError: invalid syntax ("),
)  # fmt: skip

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
    Broken(WITHOUT_SERVERS, "strategy", "needs parameter servers, and the job has none",
           {"chief": 1, "worker": 1}),
    Broken(f"{IMPORT}{MULTI_WORKER}", "strategy", "has no parameter servers, and the job has some",
           {"worker": 1, "ps": 1, "success": "all-workers"}),
    Broken(OTHERS_CONFIG.format(config='"{1: 2}"'), "tf-config", "cannot use TF_CONFIG: JSONDecodeError"),
    Broken(OTHERS_CONFIG.format(config='json.dumps({"cluster": {"worker": ["127.0.0.1:2"]}, "task":'
                                       ' {"type": "worker", "index": 3}})'),
           "tf-config", "The `task_id` 3 exceeds the maximum id of worker"),
    Broken(LAYERS.format(width=5, label=0), "program-error", "expected axis -1 of input shape to have value 4"),
    Broken(LAYERS.format(width=4, label=7), "program-error", "label value of 7 which is outside the valid range"),
    Broken(GENERATOR.format(last=2), "end-of-data", "asked for more data than its dataset has ("),
    Broken(GENERATOR.format(last="'x'"), "program-error", "but the yielded element was x. ("),
    Broken(f"{IMPORT}next(iter(tf.data.TFRecordDataset('/no/a')))", "missing-file", "the file /no/a ("),
    Broken(f"{IMPORT}tf.keras.models.load_model('/m.keras')", "missing-file", "the file /m.keras ("),
    Broken(f"{IMPORT}{IN_GRAPH}", "program-error", "has no attribute 'numpy' ("),
    Broken(
        IN_STRATEGY.format(strategy="tf.distribute.MultiWorkerMirroredStrategy()"),
        "keras-3",
        "Keras 3 does not train under MultiWorkerMirroredStrategy",
        {"worker": 2},
    ),
    Broken(PARAMETER_SERVER, "keras-3", "or ParameterServerStrategy", {"chief": 1, "worker": 1, "ps": 1}),
    Broken("import tensorflow as tf\ntf.app.run()", "tensorflow-1", "for TensorFlow 1 on TensorFlow 2"),
    Broken("import tensorflow.contrib", "tensorflow-1", "for TensorFlow 1 on TensorFlow 2"),
    Broken(f"import tensorflow as tf\n{SHAPE}", "program-error", "task.py:4)"),
    Broken("import tensorflow as tf\ntf.zeros([1 << 44])", "gpu-memory", "more memory than"),
    Broken(f"import tensorflow as tf\n{NAN}", "nan-loss", "the loss or a tensor is not a number"),
    Broken(SERVER, "address-in-use", "cannot be opened: usually another process has it"),
)  # fmt: skip
