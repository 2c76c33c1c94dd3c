"""Causes of programs that ended by themselves: the exception, and the fix if the error is a known one."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from tfyard.logs.tracebacks import Raised, last_exception
from tfyard.overview.cause import TASKS, Cause, S, cut
from tfyard.overview.causes import files, killed
from tfyard.overview.causes.death import LAST_LINES, Death, last_line
from tfyard.overview.evidence import End, Evidence

MOST_BETWEEN = 10
"""Maximum number of lines between the tracebacks of a child process and its parent."""
LAST_WORDS = 10
"""Number of last lines that are searched for one that names the error."""
_ERROR_LINE = r"^(?:\S+ ){0,3}(?:ERROR|FATAL|CRITICAL)\b|^\S+: error: "
_MODULE = r"No module named '([\w.]+)'"
_OF_TF1 = (
    r"module 'tensorflow' has no attribute '(?:app|flags|placeholder|Session|contrib|ConfigProto|GPUOptions"
    r"|logging|gfile|layers|estimator|InteractiveSession|global_variables\w*|get_variable|variable_scope"
    r"|reset_default_graph|get_default_graph|set_random_seed|truncated_normal|random_normal|random_uniform|placeholder_with_default"
    r"|assign|log|to_float|to_int32|trainable_variables|get_collection|GraphDef|python_io|FixedLenFeature)'"
)
_TF1_MODULES = ("tensorflow.contrib", "tensorflow.examples")
_NAN = (
    r"(?i)NaN loss during training|Tensor had (?:NaN|[+-]?Inf)|Invalid loss, terminating training|loss is nan"
)
_IN_USE = r"(?i)address already in use|errno: ?98|EADDRINUSE"
_NO_SERVER = r"Could not start gRPC server"
_NOT_OPENED = r"Failed to add port to server: No address added"
"""Message of gRPC in TensorFlow 2.21, without the reason: usually the port is in use."""
_PORT = r"(?:\]|\d\.\d+\.\d+\.\d+|localhost|\bport)[:=]? ?(\d{2,5})\b"
_KERAS_3 = r"PerReplica|PerWorkerValue"
_OS_MODULE = r"^<frozen os>$|/os\.py$"
_RESOLVER = "tfconfig_cluster_resolver.py"
_TF_CONFIG = (
    r"The `task_id` \d+ exceeds|`task_type` .* not found in cluster_spec|Unrecognized task_type"
    r"|Disallowed task type"
)
_BY_COORDINATOR = r"ClusterCoordinator|RemoteValue|ParameterServerStrategy"
"""Names in messages of Keras; only if Keras is among the frames, because programs use them, too."""


class Known(Struct, frozen=True):
    """A known exception, with its cause and fix."""

    kind: str
    pattern: str
    words: str
    """{: text} is the exception's message; {sentence}: with its type."""
    fix: str
    local_fix: str = ""
    """The fix on this machine, if it differs."""

    def __call__(self, death: Death) -> Cause | None:
        if not re.search(self.pattern, death.text):
            return None
        text = f": {death.raised.text}" if death.raised and death.raised.text else ""
        words = self.words.replace("{: text}", text).replace("{sentence}", _sentence(death))
        return death.cause(self.kind, words, death.fix(self.fix, self.local_fix))


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    """The cause by the first function that knows it; the last function knows every end."""
    is_sent = end.exit_code in killed.FROM_OUTSIDE
    death = Death(end, evidence, None if is_sent else _decisive(end))
    known = (_signal,) if is_sent else KNOWN
    yield next(cause for each in known if (cause := each(death)))


def _decisive(end: End) -> Raised | None:
    """The exception that ended the program or its child process. A signal ends a program without one, unless it is
    printed at the very end."""
    raised = last_exception(end.text)
    if raised is None:
        return None
    if end.exit_code in killed.SIGNALS and raised.whole.count("\n") > LAST_LINES:
        return None
    return _of_child(raised) or raised


def _of_child(raised: Raised) -> Raised | None:
    """The exception that a child process printed right before its parent failed because of it."""
    if raised.name != "CalledProcessError" or raised.before is None:
        return None
    lines = raised.before.whole.split("\n")
    between = lines[: len(lines) - raised.whole.count("\n")]
    headers = [n for n, line in enumerate(between) if line.startswith("Traceback (most recent")]
    return raised.before if headers and headers[-1] <= MOST_BETWEEN else None


def _missing_module(death: Death) -> Cause | None:
    match = re.search(_MODULE, death.text)
    if match is None or match[1].startswith(_TF1_MODULES):
        return None
    name = match[1]
    lacks = "the Python that runs the tasks does not have it" if death.is_local else "it is not in the image"
    where = death.fix(
        "job file: an `image:` that has it",
        "name the interpreter that has it with --python, or activate its environment",
    )
    fix = f"{where}; if it is your own code, {_own_module(death)}"
    return death.cause("missing-module", f"{TASKS} did not find the module {name}: {lacks}", fix)


def _own_module(death: Death) -> str:
    """How a module of the user's own code is found. Python looks for it in the folder of the program, or, with
    `-m`, in the folder of the code."""
    if not death.evidence.code:
        return "job file: `code: .`"
    module = death.evidence.as_module(death.end.task)
    beside = f"its file is missing beside the program{death.left_out}"
    return f"job file: `run: python -m {module}`" if module else beside


def _tensorflow_1(death: Death) -> Cause | None:
    module = re.search(_MODULE, death.text)
    is_module = module is not None and module[1].startswith(_TF1_MODULES)
    if not is_module and not re.search(_OF_TF1, death.text):
        return None
    fix = "job file: `tf1: true`" + (", or --tf1" if death.is_local else "")
    return death.cause("tensorflow-1", f"{TASKS} run{S} a program for TensorFlow 1 on TensorFlow 2", fix)


def _keras_3(death: Death) -> Cause | None:
    """The cause of a program under Keras 3, which does not support strategies of several machines."""
    is_coordinated = "/keras/" in death.end.text and re.search(_BY_COORDINATOR, death.text)
    if death.raised is None or not (is_coordinated or re.search(_KERAS_3, death.text)):
        return None
    words = f"{TASKS}: Keras 3 does not train under MultiWorkerMirroredStrategy or ParameterServerStrategy"
    fix = "install tf_keras, and job file: `env: {TF_USE_LEGACY_KERAS: 1}`"
    return death.cause("keras-3", words, fix)


def _tf_config(death: Death) -> Cause | None:
    """The cause of an invalid TF_CONFIG: tfyard writes a valid one, so the user or the program changed it."""
    is_broken = "JSONDecodeError" in death.text and _RESOLVER in death.end.text
    if not re.search(_TF_CONFIG, death.text) and not is_broken:
        return None
    fix = "tfyard sets TF_CONFIG for each task: remove it from `env:` and from the program"
    return death.cause("tf-config", f"{TASKS} cannot use TF_CONFIG: {_sentence(death)}", fix)


def _address_in_use(death: Death) -> Cause | None:
    if death.raised is not None and not re.search(f"{_IN_USE}|{_NOT_OPENED}|{_NO_SERVER}", death.text):
        return None
    text = death.end.text if death.raised else death.text
    lines = [line for line in text.split("\n") if re.search(f"{_IN_USE}|{_NOT_OPENED}", line)]
    if not lines:
        return None
    line = next((line for line in lines if re.search(_IN_USE, line)), lines[0])
    port, is_in_use = re.search(_PORT, line), re.search(_IN_USE, line)
    problem = (
        "is in use by another process" if is_in_use else "cannot be opened: usually another process has it"
    )
    words = f"{TASKS}: its port{f' {port[1]}' if port else ''} {problem}"
    fix = "job file: another `port:`; with hostNetwork, two tasks of a node must not share one"
    return death.cause("address-in-use", words, fix, line)


def _environment(death: Death) -> Cause | None:
    raised = death.raised
    if raised is None or raised.name != "KeyError" or not re.search(_OS_MODULE, raised.innermost):
        return None
    name = raised.text.strip("'")
    fix = death.fix(f"job file: `env: {{{name}: …}}`", f"--env {name}=…")
    return death.cause("missing-variable", f"{TASKS}: the environment variable {name} is not set", fix)


def _exception(death: Death) -> Cause | None:
    raised = death.raised
    if raised is None:
        return None
    cause = death.cause("program-error", f"{TASKS} failed with {raised.sentence}")
    before = raised.before if raised.link else None
    if before is None or before.position in ("", raised.position):
        return cause
    return replace(cause, sentence=f"{cause.sentence}, {raised.link} {before.sentence} ({before.position})")


def _signal(death: Death) -> Cause | None:
    return killed.of_signal(death.end, death.is_local)


def _exit_code(death: Death) -> Cause:
    """The cause if only the exit code is known, with one of the last lines if there are any."""
    last = death.end.text.rstrip().split("\n")[-LAST_WORDS:]
    errors = [line.strip() for line in last if re.search(_ERROR_LINE, line)]
    line = errors[-1] if errors else last_line(death.end.text)
    words = f"{TASKS} ended with {death.end.words}" + (
        f": {cut(line, 240)}" if line else ", and said nothing about the cause"
    )
    return death.cause("program-error", words, line=line or death.end.words)


def _sentence(death: Death) -> str:
    return death.raised.sentence if death.raised else last_line(death.text)


ERRORS = (
    Known(
        "strategy",
        r"There is no id for task_type 'ps'",
        f"{TASKS}: MultiWorkerMirroredStrategy has no parameter servers, and the job has some",
        "job file: without `ps:`; or a program with ParameterServerStrategy",
    ),
    Known(
        "strategy",
        r"There must be at least one ps\.",
        f"{TASKS}: ParameterServerStrategy needs parameter servers, and the job has none",
        "job file: `ps: 1`; or a program with MultiWorkerMirroredStrategy",
    ),
    Known(
        "gpu-memory",
        r"OOM when allocating tensor|CUDA_ERROR_OUT_OF_MEMORY|failed to allocate .* from device"
        r"|RESOURCE_EXHAUSTED: Out of memory|Out of memory while trying to allocate",
        f"{TASKS} need{S} more memory than its GPU or device has",
        "smaller batches; or `env: {TF_FORCE_GPU_ALLOW_GROWTH: true}` if tasks share a GPU",
    ),
    Known(
        "out-of-memory",
        r"(?m)^(?:[\w.]+\.)?(?:MemoryError|_ArrayMemoryError)\b",
        f"{TASKS} asked for more memory than there is{{: text}}",
        "smaller batches or arrays; or job file: more `memory:`",
        "smaller batches or arrays",
    ),
    Known(
        "nan-loss",
        _NAN,
        f"{TASKS} stopped because the loss or a tensor is not a number",
        "a smaller learning rate, gradient clipping, or check the data for NaN",
    ),
    Known(
        "no-space",
        r"No space left on device",
        f"{TASKS} ran out of disk space",
        "job file: a larger `size:` of its volume, or a volume instead of the container's disk",
        "free some space",
    ),
    Known(
        "end-of-data",
        r"^StopIteration$|OutOfRangeError: .*End of sequence",
        f"{TASKS} asked for more data than its dataset has",
        "`dataset.repeat()`, or fewer steps",
    ),
    Known(
        "child-killed",
        r"BrokenProcessPool|died with <Signals\.SIGKILL",
        f"{TASKS} failed because a child process of it was killed",
        "usually memory ran out: job file: more `memory:`, or fewer processes",
        "usually memory ran out: fewer or smaller processes",
    ),
    Known(
        "unreachable",
        r"^\S*(?:URLError|ConnectionError|ConnectTimeout|ConnectionRefusedError|gaierror|HTTPError|TimeoutError)\b"
        r"|URL fetch failure",
        f"{TASKS} failed with {{sentence}}",
        "a server outside of the job was not reached: check its name, and that pods may connect to it",
        "a server outside of the job was not reached: check its name and this machine's network",
    ),
)
KNOWN: tuple[Callable[[Death], Cause | None], ...] = (
    _missing_module,
    _tensorflow_1,
    _keras_3,
    _tf_config,
    _address_in_use,
    *ERRORS,
    files.permission,
    files.read_only,
    files.missing_file,
    _environment,
    _exception,
    _signal,
    _exit_code,
)
