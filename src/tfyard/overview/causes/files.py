"""Causes of programs that ended because of a file that is not there, or that they may not read or write."""

import posixpath
import re

from tfyard.model import Manifest
from tfyard.model.names import OUT_VARIABLE
from tfyard.overview.cause import TASKS, Cause
from tfyard.overview.causes.death import Death

_DENIED = r"(?i)permission denied:? ?'?([/\w.-]*)|PermissionDeniedError:.*?(/[\w./-]+)"
_READ_ONLY = (
    r"Read-only file system: '([^']+)'|Read-only file system:? ?'?(/[\w./-]*)"
    r"|([\w./-]+); Read-only file system|([^\s':]+)'?: Read-only file system|name = '([^']+)', errno = 30,"
)
"""A read-only file system, as Python, other programs, TensorFlow, tools such as mkdir, and HDF5 report it."""
_NO_FILE = (
    r"(?:can't open file|No such file or directory:) '([^']+)'|(?<![^\s:])([^\s:]+) not found\.$"
    r"|File not found: filepath=(\S+?)\.? |(?<![/\w.:-])([/\w.:-]+); No such file"
    r"|(?:any matching files for|Could not find directory) (\S+)"
)
_WORK = r"^.*/\.tfyard/runs/[^/]+/work/[^/]+/[^/]+/"
"""The folder in which a task of a run starts; job files name files relative to it."""


def permission(death: Death) -> Cause | None:
    match = re.search(_DENIED, death.text)
    if match is None:
        return None
    path = match[1] or match[2] or ""
    mount = _mount(death, path)
    if not mount:
        return None if not path else death.cause("permission", f"{TASKS} may not write or read {path}")
    fix = "job file: `overlay: {spec: {securityContext: {fsGroup: 1000}}}`"
    return death.cause(
        "volume-not-writable",
        f"{TASKS} may not write to its volume at {mount}",
        "" if death.is_local else fix,
    )


def read_only(death: Death) -> Cause | None:
    match = re.search(_READ_ONLY, death.text)
    if match is None:
        return None
    container, code = death.evidence.container(death.end.task), death.evidence.code
    written = next(filter(None, match.groups()))
    path = posixpath.normpath(posixpath.join(str(container.get("workingDir") or code), written))
    mount = _mount(death, path)
    if mount and mount == code:
        words = f"{TASKS} may not write {written}: {code} has the code, which is read-only on a cluster"
        return death.cause("volume-not-writable", words, _elsewhere(container))
    fix = "job file: its volume without `readOnly: true`; or write to another one" if mount else ""
    words = f"{TASKS} may not write to {mount or written}: it is mounted read-only"
    return death.cause("volume-not-writable", words, fix)


def _elsewhere(container: Manifest) -> str:
    """The fix for a program that tries to write beside its code: where it may write."""
    variables = {str(each.get("name")): each.get("value") for each in container.get("env") or ()}
    if out := variables.get(OUT_VARIABLE):
        return f'write below {out}: os.environ.get("{OUT_VARIABLE}", "out") is the folder here and there'
    return "write to a volume; job file: `volumes: {out: {claim: NAME, size: 5Gi, at: /out}}`"


def _mount(death: Death, path: str) -> str:
    listed = death.evidence.container(death.end.task).get("volumeMounts") or []
    mounts = [str(each.get("mountPath", "")) for each in listed]
    fitting = [m for m in mounts if m and (path == m or path.startswith(f"{m.rstrip('/')}/"))]
    return max(fitting, key=len, default="")


def missing_file(death: Death) -> Cause | None:
    match = re.search(_NO_FILE, death.raised.sentence if death.raised else death.text)
    if match is None:
        return None
    path = re.sub(_WORK, "", next(filter(None, match.groups())))
    if "can't open file" in death.text:
        path = death.evidence.of_code(path) or path
        brings = "job file: `code: .` brings your code; or "
        fix = brings + death.fix("an image that has it", "check the path in `run:`")
        fix = f"its path is relative to {_folder(death)}" if death.evidence.code else fix
        return death.cause("missing-file", f"there is no program {path} for {TASKS}", fix)
    fix = "check the path; job file: `volumes:` puts a folder there"
    if death.evidence.code and not re.match(r"/|\w+://", path):
        fix = f"relative paths begin in {_folder(death)}"
    elif not re.match(r"/|\w+://", path):
        fix = "relative paths begin in the folder of `code:`, without it in " + death.fix(
            "the image's", "an empty one"
        )
    return death.cause("missing-file", f"{TASKS} did not find the file {path}", fix)


def _folder(death: Death) -> str:
    """The folder in which relative paths begin, and the hint that some of its files may be left out."""
    code = death.evidence.code
    return code if death.is_local and code.startswith("/") else f"the folder of `code:`{death.left_out}"
