"""How the job's code, and the packages that it requires, get into the pods, if they are not in the image.

A folder of a few text files becomes a ConfigMap that is mounted directly, so that `kubectl edit` shows the
program. Anything else is packed, and unpacked by an init container with the image's own Python.

`requirements` are packages that pip installs before the training, into a layer that PYTHONPATH names. On a claim
the layer is kept for all tasks and jobs with the same image and the same file; without a claim, each pod has its
own.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import Code, Job, Manifest, Problem, tensorflow_container
from tfyard.model.names import CODE_VOLUME as VOLUME
from tfyard.model.names import PACKAGES_VOLUME

from . import archive, podspec, scripts, tf1
from .objects import RenderedObject
from .options import CodeFile, RenderOptions

MAX_CONFIG_MAP = 1 << 20
"""Largest ConfigMap that Kubernetes accepts, in bytes."""
MAX_UNPACKED, MAX_FILES = 4 << 30, 100_000
"""Limits for a fetched archive: bytes and files."""
ARCHIVE = "code.tar.gz"
ON_CLAIM = "tfyard-code"
"""Folder on a claim with one folder per code, named by its hash."""
_SOURCE_AT = "/tfyard-code"
_FETCH = "fetch.py"
_PACKAGES, _PACKAGES_AT = PACKAGES_VOLUME, f"/{PACKAGES_VOLUME}"
LAYERS = "packages"
"""Folder beside the code on a claim, with one folder per layer of packages."""
_INSTALL = "requirements.py"
_TELL = "packages.py"
"""Follows the script that uses the image's Python last: records of jobs have what it tells."""
_OTHER_PACKAGES = "TFYARD_OTHER_PACKAGES"
"""Variable that keeps the job's own value of PYTHONPATH."""
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def add(job: Job, options: RenderOptions) -> tuple[Job, list[RenderedObject]]:
    """The job with its code in the pods, and the objects that contain it."""
    code = job.code
    if code is None:
        return job, []
    if code.kind == "folder":
        return _add_folder(job, code, options.code_files)
    if code.kind == "git":
        return with_packages(job, code, lambda template: _cloned(template, code, options.git_image)), []
    script = {**_config_map(job), "data": {_FETCH: _bringing(_FETCH, code)}}
    job = with_packages(job, code, lambda template: _fetched(template, code, script["metadata"]["name"]))
    return job, [
        RenderedObject(script, f"The script that fetches `code: {code.source}` before the training.")
    ]


def unsupported(job: Job) -> list[str]:
    """Messages about settings of the code that only `tfyard submit` supports."""
    if job.code is None or not job.code.claim:
        return []
    cannot = f"code.claim: manifests cannot put files on the claim {job.code.claim}"
    return [f"{cannot}, so they have the code in a ConfigMap; `tfyard submit` puts it there"]


def _config_map(job: Job) -> Manifest:
    metadata = {"name": f"{job.name}-code", "namespace": job.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def with_packages(job: Job, code: Code, change: podspec.Change) -> Job:
    """The job with its code in each pod template, added by `change`, and with the packages that it requires."""
    mount: Manifest = {"name": VOLUME, "mountPath": code.at}

    def both(template: Manifest) -> Manifest:
        if code.requirements:
            template = with_requirements(template, code, mount, layer_in_pod())
        return change(template)

    return each_template(job, both)


def each_template(job: Job, change: podspec.Change) -> Job:
    roles = tuple(replace(role, template=change(role.template)) for role in job.roles)
    return replace(job, roles=roles)


def _add_folder(job: Job, code: Code, files: Sequence[CodeFile]) -> tuple[Job, list[RenderedObject]]:
    config_map = config_map_with(files, _config_map(job))
    if (size := size_of(config_map)) > MAX_CONFIG_MAP:
        raise Invalid([_too_large(size, files)])
    comment = f"The files of `code: {code.source}`."
    if "binaryData" in config_map:
        why = "subfolders and binary files cannot be keys of a ConfigMap"
        comment = f"The {len(files)} files of `code: {code.source}`, as one archive: {why}."
    return in_config_map(job, code, config_map), [RenderedObject(config_map, comment)]


def config_map_with(files: Sequence[CodeFile], head: Manifest, limit: int = MAX_CONFIG_MAP) -> Manifest:
    """`head` with the files as keys, if they can be keys and have at most `limit` bytes; else with an archive."""
    files = sorted(files, key=lambda file: file.path)
    texts = _flat_texts(files)
    if texts is not None and sum(len(file.data) + len(file.path) for file in files) <= limit:
        return {**head, "data": texts}
    return {**head, "binaryData": {ARCHIVE: base64.b64encode(pack(files)).decode()}}


def in_config_map(job: Job, code: Code, config_map: Manifest) -> Job:
    """The job whose pods get the code from a ConfigMap that `config_map_with` made."""
    mount: Callable[[Manifest, Code, str], Manifest] = _unpacked if "binaryData" in config_map else _mounted
    name = config_map["metadata"]["name"]
    return with_packages(job, code, lambda template: mount(template, code, name))


def on_claim(job: Job, code: Code, kept: tuple[str, str], requirements: bytes) -> Job:
    """The job whose pods mount code on a claim, read-only. `kept` has the claim and the hash of the code."""
    claim, digest = kept
    volume: Manifest = {"name": VOLUME, "persistentVolumeClaim": {"claimName": claim}}
    where = f"{ON_CLAIM}/{digest}"
    mount: Manifest = {"name": VOLUME, "mountPath": code.at, "subPath": where, "readOnly": True}

    def change(template: Manifest) -> Manifest:
        template = podspec.add_volume(template, volume, mount)
        if not code.requirements:
            return template
        return with_requirements(template, code, mount, layer_on_claim(volume, requirements, template))

    return each_template(job, change)


def files_of(config_map: Manifest) -> list[CodeFile]:
    """The files in a ConfigMap that `config_map_with` made."""
    texts = [CodeFile(path, text.encode()) for path, text in (config_map.get("data") or {}).items()]
    packed = (config_map.get("binaryData") or {}).get(ARCHIVE)
    return texts + (archive.unpack(base64.b64decode(packed)) if packed else [])


def size_of(config_map: Manifest) -> int:
    """Size of a ConfigMap as Kubernetes counts it: keys and decoded values."""
    texts = config_map.get("data") or {}
    packed = config_map.get("binaryData") or {}
    return sum(len(key) + len(text.encode()) for key, text in texts.items()) + sum(
        len(key) + len(base64.b64decode(text)) for key, text in packed.items()
    )


def _flat_texts(files: Sequence[CodeFile]) -> dict[str, str] | None:
    """The files as keys of a ConfigMap; None if one is in a folder, is not text or has no valid name."""
    texts = {}
    for file in files:
        text = _text(file.data)
        if text is None or file.executable or not _KEY.fullmatch(file.path) or file.path.startswith(".."):
            return None
        texts[file.path] = text
    return texts


def _text(data: bytes) -> str | None:
    """The file as text; None if it has characters that YAML cannot contain, so that it must be packed."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\n\t" for c in text) else None


def pack(files: Sequence[CodeFile]) -> bytes:
    members = (
        archive.ArchiveFile(file.path, len(file.data), file.executable, (file.data,)) for file in files
    )
    return b"".join(archive.gzip(archive.tar(members)))


def _too_large(size: int, files: Sequence[CodeFile]) -> Problem:
    largest = sorted(files, key=lambda file: -len(file.data))[:3]
    names = ", ".join(f"{file.path} ({len(file.data):,} bytes)" for file in largest)
    text = f"the folder has {size:,} bytes when packed, and a ConfigMap holds {MAX_CONFIG_MAP:,}"
    fix = (
        "leave data out by .gitignore or .tfyardignore, send the job with `tfyard submit`,"
        f" or use a git or http(s) address; the largest files: {names}"
    )
    return Problem(("code",), text, fix)


def _mounted(template: Manifest, code: Code, name: str) -> Manifest:
    volume = {"name": VOLUME, "configMap": {"name": name}}
    return podspec.add_volume(template, volume, {"name": VOLUME, "mountPath": code.at})


def _unpacked(template: Manifest, code: Code, name: str) -> Manifest:
    command = [*podspec.python("-c", _bringing("unpack.py", code)), f"{_SOURCE_AT}/{ARCHIVE}", code.at]
    return _by_init_container(template, code, name, command)


def _bringing(script: str, code: Code) -> str:
    """The script that brings the code, and tells the packages unless a later step installs more of them."""
    return scripts.read(script) + ("" if code.requirements else scripts.read(_TELL))


def _fetched(template: Manifest, code: Code, name: str) -> Manifest:
    limits = [str(MAX_UNPACKED), str(MAX_FILES)]
    command = [*podspec.python(f"{_SOURCE_AT}/{_FETCH}"), code.source, code.at, *limits]
    return _by_init_container(template, code, name, command)


def _by_init_container(template: Manifest, code: Code, name: str, command: list[str]) -> Manifest:
    """Adds an empty directory for the code, and an init container that fills it from the ConfigMap."""
    volume = {"name": f"{VOLUME}-source", "configMap": {"name": name}}
    source = {"name": volume["name"], "mountPath": _SOURCE_AT, "readOnly": True}
    mounts: list[Manifest] = [{"name": VOLUME, "mountPath": code.at}, source]
    step = podspec.init_container(VOLUME, template, command, mounts)
    template = _with_directory(template, code)
    template = {**template, "spec": podspec.append(template["spec"], "volumes", [volume])}
    return podspec.add_init_container(template, step, first=True)


def _cloned(template: Manifest, code: Code, image: str) -> Manifest:
    clone = 'git clone --quiet -- "$1" "$2" && if [ -n "$3" ]; then git -C "$2" checkout --quiet "$3" --; fi'
    tell = 'echo "commit: $(git -C "$2" rev-parse HEAD)"'
    command = ["/bin/sh", "-c", f"{clone} && {tell}", "git", code.source, code.at, code.ref]
    step = podspec.init_container(VOLUME, template, command, [{"name": VOLUME, "mountPath": code.at}])
    return podspec.add_init_container(_with_directory(template, code), {**step, "image": image}, first=True)


def _with_directory(template: Manifest, code: Code) -> Manifest:
    volume = {"name": VOLUME, "emptyDir": {}}
    return podspec.add_volume(template, volume, {"name": VOLUME, "mountPath": code.at})


# --- requirements


def with_requirements(
    template: Manifest, code: Code, code_mount: Manifest, layer: tuple[Manifest, str]
) -> Manifest:
    """Adds an init container that installs the packages. It is the first; the one that brings the code must be
    added later, before it. `layer` has the volume and the name of the folder in it."""
    volume, name = layer
    sub_path = {"subPath": f"{ON_CLAIM}/{LAYERS}"} if "persistentVolumeClaim" in volume else {}
    mount: Manifest = {"name": volume["name"], "mountPath": _PACKAGES_AT, **sub_path}
    script = scripts.read(_INSTALL) + scripts.read(_TELL)
    command = podspec.python("-c", script, f"{code.at}/{code.requirements}", _PACKAGES_AT, name)
    step = podspec.init_container(_PACKAGES, template, command, [code_mount, mount])
    step["workingDir"] = code.at  # paths in the file, such as ./package.whl, are relative to it
    step["terminationMessagePolicy"] = "FallbackToLogsOnError"  # pip's last lines say why the task failed
    if all(each["name"] != volume["name"] for each in template["spec"].get("volumes") or []):
        template = {**template, "spec": podspec.append(template["spec"], "volumes", [volume])}
    template = podspec.change_container(
        template, lambda c: podspec.append(c, "volumeMounts", [{**mount, "readOnly": True}])
    )
    template = podspec.add_init_container(template, step, first=True)
    return tf1.with_folder(template, f"{_PACKAGES_AT}/{name}", keep=_OTHER_PACKAGES)


def layer_in_pod() -> tuple[Manifest, str]:
    return {"name": _PACKAGES, "emptyDir": {}}, "layer"


def layer_on_claim(volume: Manifest, requirements: bytes, template: Manifest) -> tuple[Manifest, str]:
    """The volume of the code, and the layer's name, which depends on the file and the image."""
    image = str(tensorflow_container(template).get("image") or "")
    return volume, hashlib.sha256(image.encode() + b"\0" + requirements).hexdigest()[:16]
