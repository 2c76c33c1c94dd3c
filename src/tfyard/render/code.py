"""How the job's code gets into the pods, if it is not in the image.

A folder of a few text files becomes a ConfigMap that is mounted as it is, so that `kubectl edit` shows the
program. Anything else is packed, and unpacked by an init container with the image's own Python.
"""

import base64
import io
import re
import struct
import zlib
from collections.abc import Sequence

from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import Code, Job, Manifest, Problem

from . import podspec, scripts
from .objects import RenderedObject
from .options import CodeFile, RenderOptions

MAX_CONFIG_MAP = 1 << 20
"""The most that Kubernetes accepts in one ConfigMap."""
MAX_UNPACKED, MAX_FILES = 4 << 30, 100_000
"""Bytes and files of an archive that is fetched."""
VOLUME = "tfyard-code"
ARCHIVE = "code.tar.gz"
_SOURCE_AT = "/tfyard-code"
_FETCH = "fetch.py"
_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def add(job: Job, options: RenderOptions) -> tuple[Job, list[RenderedObject]]:
    """The job whose pods have their code, and the objects that contain it."""
    code = job.code
    if code is None:
        return job, []
    if code.kind == "folder":
        return _add_folder(job, code, options.code_files)
    if code.kind == "git":
        return _each_template(job, lambda template: _cloned(template, code, options.git_image)), []
    script = {**_config_map(job), "data": {_FETCH: scripts.read(_FETCH)}}
    job = _each_template(job, lambda template: _fetched(template, code, script["metadata"]["name"]))
    return job, [
        RenderedObject(script, f"The script that fetches `code: {code.source}` before the training.")
    ]


def _config_map(job: Job) -> Manifest:
    metadata = {"name": f"{job.name}-code", "namespace": job.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def _each_template(job: Job, change: podspec.Change) -> Job:
    roles = tuple(replace(role, template=change(role.template)) for role in job.roles)
    return replace(job, roles=roles)


def _add_folder(job: Job, code: Code, files: Sequence[CodeFile]) -> tuple[Job, list[RenderedObject]]:
    head = _config_map(job)
    name = head["metadata"]["name"]
    files = sorted(files, key=lambda file: file.path)
    texts = _flat_texts(files)
    if texts is not None and sum(len(file.data) + len(file.path) for file in files) <= MAX_CONFIG_MAP:
        config_map = RenderedObject({**head, "data": texts}, f"The files of `code: {code.source}`.")
        return _each_template(job, lambda template: _mounted(template, code, name)), [config_map]
    archive = pack(files)
    if len(archive) + len(ARCHIVE) > MAX_CONFIG_MAP:
        raise Invalid([_too_large(len(archive), files)])
    packed = {ARCHIVE: base64.b64encode(archive).decode()}
    why = "subfolders and binary files cannot be keys of a ConfigMap"
    comment = f"The {len(files)} files of `code: {code.source}`, as one archive: {why}."
    job = _each_template(job, lambda template: _unpacked(template, code, name))
    return job, [RenderedObject({**head, "binaryData": packed}, comment)]


def _flat_texts(files: Sequence[CodeFile]) -> dict[str, str] | None:
    """The files as keys of a ConfigMap, if they can be: no folders, text only, valid names."""
    texts = {}
    for file in files:
        text = _text(file.data)
        if text is None or file.executable or not _KEY.fullmatch(file.path) or file.path.startswith(".."):
            return None
        texts[file.path] = text
    return texts


def _text(data: bytes) -> str | None:
    """YAML contains printable text only; a file with other characters must be packed to arrive unchanged."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\n\t" for c in text) else None


def pack(files: Sequence[CodeFile]) -> bytes:
    """Byte-stable: no times, no owners, and our own gzip header, because Python's differs by version."""
    import tarfile  # only if the files are not a handful of texts

    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in files:
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mode = len(file.data), 0o755 if file.executable else 0o644
            archive.addfile(entry, io.BytesIO(file.data))
    data = plain.getvalue()
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    end = struct.pack("<LL", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + body + end


def _too_large(size: int, files: Sequence[CodeFile]) -> Problem:
    largest = sorted(files, key=lambda file: -len(file.data))[:3]
    names = ", ".join(f"{file.path} ({len(file.data):,} bytes)" for file in largest)
    text = f"the folder has {size:,} bytes when packed, and a ConfigMap holds {MAX_CONFIG_MAP:,}"
    fix = f"move data from it to a volume, or use a git or http(s) address; the largest files: {names}"
    return Problem(("code",), text, fix)


def _mounted(template: Manifest, code: Code, name: str) -> Manifest:
    volume = {"name": VOLUME, "configMap": {"name": name}}
    return podspec.add_volume(template, volume, {"name": VOLUME, "mountPath": code.at})


def _unpacked(template: Manifest, code: Code, name: str) -> Manifest:
    command = [*_python("-c", scripts.read("unpack.py")), f"{_SOURCE_AT}/{ARCHIVE}", code.at]
    return _by_init_container(template, code, name, command)


def _fetched(template: Manifest, code: Code, name: str) -> Manifest:
    limits = [str(MAX_UNPACKED), str(MAX_FILES)]
    command = [*_python(f"{_SOURCE_AT}/{_FETCH}"), code.source, code.at, *limits]
    return _by_init_container(template, code, name, command)


def _by_init_container(template: Manifest, code: Code, name: str, command: list[str]) -> Manifest:
    """An empty directory for the code, and an init container that fills it from the ConfigMap."""
    volume = {"name": f"{VOLUME}-source", "configMap": {"name": name}}
    source = {"name": volume["name"], "mountPath": _SOURCE_AT, "readOnly": True}
    mounts: list[Manifest] = [{"name": VOLUME, "mountPath": code.at}, source]
    step = podspec.init_container(VOLUME, template, command, mounts)
    template = _with_directory(template, code)
    template = {**template, "spec": podspec.append(template["spec"], "volumes", [volume])}
    return podspec.add_init_container(template, step, first=True)


def _cloned(template: Manifest, code: Code, image: str) -> Manifest:
    line = 'git clone --quiet -- "$1" "$2" && if [ -n "$3" ]; then git -C "$2" checkout --quiet "$3" --; fi'
    command = ["/bin/sh", "-c", line, "git", code.source, code.at, code.ref]
    step = podspec.init_container(VOLUME, template, command, [{"name": VOLUME, "mountPath": code.at}])
    return podspec.add_init_container(_with_directory(template, code), {**step, "image": image}, first=True)


def _with_directory(template: Manifest, code: Code) -> Manifest:
    volume = {"name": VOLUME, "emptyDir": {}}
    return podspec.add_volume(template, volume, {"name": VOLUME, "mountPath": code.at})


def _python(*words: str) -> list[str]:
    """`python3`, or `python` if an image only has that."""
    line = 'exec "$(command -v python3 || command -v python)" "$@"'
    return ["/bin/sh", "-c", line, "python", *words]
