"""A program ended by itself: the exception that it raised, and the fix where the error is a known one."""

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from tfyard.overview.cause import TASKS, Cause, S, cut
from tfyard.overview.evidence import End, Evidence
from tfyard.overview.tracebacks import Raised, last_exception

_SIGNALS = {
    132: ("illegal-instruction", "SIGILL: its TensorFlow is built for another processor",
          "use an image for the node's processor, or nodes with AVX: `nodeSelector:`"),
    134: ("abort", "SIGABRT: a library gave up", ""),
    135: ("crash", "SIGBUS: often /dev/shm is too small",
          "job file: `volumes: {shm: {emptyDir: {medium: Memory}, at: /dev/shm}}`"),
    137: ("killed", "SIGKILL: by a person, the node, or because memory ran out outside of its own limit", ""),
    139: ("crash", "SIGSEGV: a crash in compiled code; often libraries that do not fit together", ""),
    143: ("stopped", "SIGTERM: it was asked to stop", ""),
}  # fmt: skip
"""Exit code -> kind, words, fix. 128 + the number of the signal."""
_MODULE = r"No module named '([\w.]+)'"
_OF_TF1 = (
    r"module 'tensorflow' has no attribute '(?:app|flags|placeholder|Session|contrib|ConfigProto|GPUOptions"
    r"|logging|gfile|layers|estimator|InteractiveSession|global_variables\w*|get_variable|variable_scope"
    r"|reset_default_graph|get_default_graph|set_random_seed|truncated_normal|random_normal|random_uniform|placeholder_with_default"
    r"|assign|log|to_float|to_int32|trainable_variables|get_collection|GraphDef|python_io|FixedLenFeature)'"
)
_TF1_MODULES = ("tensorflow.contrib", "tensorflow.examples")
_GPU_MEMORY = (
    r"OOM when allocating tensor|CUDA_ERROR_OUT_OF_MEMORY|failed to allocate .* from device"
    r"|RESOURCE_EXHAUSTED: Out of memory|Out of memory while trying to allocate"
)
_NAN = (
    r"(?i)NaN loss during training|Tensor had (?:NaN|[+-]?Inf)|Invalid loss, terminating training|loss is nan"
)
_IN_USE = r"(?i)address already in use|errno: ?98|EADDRINUSE"
_NOT_OPENED = r"Failed to add port to server: No address added"
"""By gRPC of TensorFlow 2.21: that it is in use is the usual reason, which is not told any more."""
_PORT = r"(?:\]|\d\.\d+\.\d+\.\d+|localhost|\bport)[:=]? ?(\d{2,5})\b"
_DENIED = r"(?i)permission denied:? ?'?([/\w.-]*)|PermissionDeniedError:.*?(/[\w./-]+)"
_READ_ONLY = r"Read-only file system:? ?'?(/[\w./-]*)|(/[\w./-]+); Read-only file system"
_NO_FILE = (
    r"(?:can't open file|No such file or directory:) '([^']+)'|NotFoundError:.*?([/\w.-]+); No such file"
)
_KERAS_3 = r"PerReplica|PerWorkerValue"
_BY_COORDINATOR = r"ClusterCoordinator|RemoteValue|ParameterServerStrategy"
"""Of Keras only if it is among the frames: programs use these themselves."""


class Death(Struct, frozen=True):
    """The end of a program, with what its last words say."""

    end: End
    evidence: Evidence
    raised: Raised | None

    @property
    def is_local(self) -> bool:
        return self.evidence.is_local

    @property
    def text(self) -> str:
        """Of the exception if there is one: earlier lines may tell of what the program survived."""
        return self.raised.whole if self.raised else self.end.text

    def cause(self, kind: str, sentence: str, fix: str = "", line: str = "") -> Cause:
        place = f" ({self.raised.place})" if self.raised and self.raised.place else ""
        said = line or (self.raised.sentence if self.raised else _last_line(self.end.text))
        return Cause(
            kind=kind,
            sentence=f"{sentence}{place}",
            fix=fix,
            tasks=(self.end.task,),
            evidence=(self.end.quote(said),),
        )


def of_end(evidence: Evidence, end: End) -> Iterator[Cause]:
    """The first that knows it; the last one knows every end."""
    death = Death(end, evidence, last_exception(end.text))
    yield next(cause for known in KNOWN if (cause := known(death)))


def _missing_module(death: Death) -> Cause | None:
    found = re.search(_MODULE, death.text)
    if found is None or found[1].startswith(_TF1_MODULES):
        return None
    name = found[1]
    if death.is_local:
        words = f"{TASKS} did not find the module {name}: the Python that runs the tasks does not have it"
        return death.cause(
            "missing-module",
            words,
            "name the interpreter that has it with --python, or activate its environment",
        )
    words = f"{TASKS} did not find the module {name}: it is not in the image"
    fix = "job file: an `image:` that has it; if it is your own code, `code: .`"
    return death.cause("missing-module", words, fix)


def _tensorflow_1(death: Death) -> Cause | None:
    module = re.search(_MODULE, death.text)
    is_module = module is not None and module[1].startswith(_TF1_MODULES)
    if not is_module and not re.search(_OF_TF1, death.text):
        return None
    fix = "job file: `tf1: true`" + (", or --tf1" if death.is_local else "")
    return death.cause("tensorflow-1", f"{TASKS} run{S} a program for TensorFlow 1 on TensorFlow 2", fix)


def _keras_3(death: Death) -> Cause | None:
    """Keras 3 has no support for strategies of several machines; its predecessor has."""
    is_coordinated = "/keras/" in death.end.text and re.search(_BY_COORDINATOR, death.text)
    if death.raised is None or not (is_coordinated or re.search(_KERAS_3, death.text)):
        return None
    words = f"{TASKS}: Keras 3 does not train under MultiWorkerMirroredStrategy or ParameterServerStrategy"
    fix = "install tf_keras, and job file: `env: {TF_USE_LEGACY_KERAS: 1}`"
    return death.cause("keras-3", words, fix)


def _gpu_memory(death: Death) -> Cause | None:
    if not re.search(_GPU_MEMORY, death.end.text):
        return None
    fix = "smaller batches; or `env: {TF_FORCE_GPU_ALLOW_GROWTH: true}` if tasks share a GPU"
    return death.cause("gpu-memory", f"{TASKS} need{S} more memory than its GPU or device has", fix)


def _nan_loss(death: Death) -> Cause | None:
    if not re.search(_NAN, death.text):
        return None
    fix = "a smaller learning rate, gradient clipping, or check the data for NaN"
    return death.cause("nan-loss", f"{TASKS} stopped because the loss or a tensor is not a number", fix)


def _address_in_use(death: Death) -> Cause | None:
    lines = [line for line in death.end.text.split("\n") if re.search(f"{_IN_USE}|{_NOT_OPENED}", line)]
    if not lines:
        return None
    line = next((line for line in lines if re.search(_IN_USE, line)), lines[0])
    port, is_told = re.search(_PORT, line), re.search(_IN_USE, line)
    what = "is in use by another process" if is_told else "cannot be opened: usually another process has it"
    words = f"{TASKS}: its port{f' {port[1]}' if port else ''} {what}"
    fix = "job file: another `port:`; with hostNetwork, two tasks of a node must not share one"
    return death.cause("address-in-use", words, fix, line)


def _no_space(death: Death) -> Cause | None:
    if "No space left on device" not in death.text:
        return None
    fix = (
        "free some space"
        if death.is_local
        else "job file: a larger `size:` of its volume, or a volume instead of the container's disk"
    )
    return death.cause("no-space", f"{TASKS} ran out of disk space", fix)


def _permission(death: Death) -> Cause | None:
    found = re.search(_DENIED, death.text)
    if found is None:
        return None
    path = found[1] or found[2] or ""
    mount = _mount(death, path)
    if not mount:
        return None if not path else death.cause("permission", f"{TASKS} may not write or read {path}")
    fix = "job file: `overlay: {spec: {securityContext: {fsGroup: 1000}}}`"
    return death.cause(
        "volume-not-writable",
        f"{TASKS} may not write to its volume at {mount}",
        "" if death.is_local else fix,
    )


def _read_only(death: Death) -> Cause | None:
    found = re.search(_READ_ONLY, death.text)
    if found is None:
        return None
    path = found[1] or found[2]
    mount = _mount(death, path)
    fix = "job file: its volume without `readOnly: true`; or write to another one" if mount else ""
    words = f"{TASKS} may not write to {mount or path}: it is mounted read-only"
    return death.cause("volume-not-writable", words, fix)


def _mount(death: Death, path: str) -> str:
    found = death.evidence.container(death.end.task).get("volumeMounts") or []
    mounts = [str(each.get("mountPath", "")) for each in found]
    fitting = [m for m in mounts if m and (path == m or path.startswith(f"{m.rstrip('/')}/"))]
    return max(fitting, key=len, default="")


def _missing_file(death: Death) -> Cause | None:
    found = re.search(_NO_FILE, death.text)
    if found is None:
        return None
    path = found[1] or found[2]
    if "can't open file" not in death.text:
        return death.cause("missing-file", f"{TASKS} did not find the file {path}")
    fix = (
        "check the path in `run:`"
        if death.is_local
        else "job file: `code: .` brings your code; or an image that has it"
    )
    return death.cause("missing-file", f"there is no program {path} for {TASKS}", fix)


def _exception(death: Death) -> Cause | None:
    if death.raised is None:
        return None
    return death.cause("program-error", f"{TASKS} failed with {death.raised.sentence}")


def _signal(death: Death) -> Cause | None:
    code = death.end.exit_code
    if code not in _SIGNALS:
        return None
    kind, words, fix = _SIGNALS[code]
    return death.cause(kind, f"{TASKS} ended by {words}", fix, _last_line(death.end.text) or death.end.words)


def _exit_code(death: Death) -> Cause:
    """All that is known: the code, and the last lines if there are any."""
    said = _last_line(death.end.text)
    words = f"{TASKS} ended with {death.end.words}" + (
        f": {cut(said, 240)}" if said else ", and said nothing about the cause"
    )
    return death.cause("program-error", words, line=said or death.end.words)


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.split("\n")) if line.strip()), "")


KNOWN: tuple[Callable[[Death], Cause | None], ...] = (
    _missing_module,
    _tensorflow_1,
    _keras_3,
    _address_in_use,
    _gpu_memory,
    _nan_loss,
    _no_space,
    _permission,
    _read_only,
    _missing_file,
    _exception,
    _signal,
    _exit_code,
)
