"""OCI images made of folders, without Docker, in the form that registry.py serves.

Three bases are made once and kept in the cache: `python` (Debian with Python 3.11), `tensorflow` (on it, the
TensorFlow of this environment, TensorBoard, Jupyter and pip), and `busybox`. A node has a folder of its own with
links to them, and whatever its tests add."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

import msgspec

from tfyard.controlplane.binaries import MissingBinaries, cache_folder
from tfyard.model.callbacks import Say
from tools.node.registry import MANIFEST

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
RECIPE = "1"
"""Raised when the functions that make the bases change."""
SUITE, PYTHON = "bookworm", "python3.11"
DEBIAN = ("python3", "ca-certificates", "iproute2", "procps")
PACKAGES = ("tensorflow", "tensorboard", "jupyter_server", "pip")
LEFT_OUT = ("var/cache/apt/", "var/lib/apt/lists/", "usr/share/doc/", "usr/share/locale/", "dev/")


class Blob(msgspec.Struct, frozen=True, rename="camel"):
    media_type: str
    digest: str
    size: int


class Image(msgspec.Struct, frozen=True):
    """Layers, lowest first, and what containers run by default: `Entrypoint`, `Cmd`, `Env`, `User` …"""

    layers: tuple[Blob, ...] = ()
    settings: dict[str, Any] = {}

    def on_top(self, layer: Blob, **settings: Any) -> "Image":
        env = [*self.settings.get("Env", ()), *settings.pop("Env", ())]
        return Image((*self.layers, layer), {**self.settings, **settings, "Env": env})


class Images:
    """The images of one folder: `blobs/` by their digest, `names.json` as registry.py reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs").mkdir(parents=True, exist_ok=True)
        self._names: list[tuple[str, str | int]] = []

    def borrow(self, image: Image) -> None:
        """Link the layers of an image from the cache."""
        for layer in image.layers:
            link = self._blob(layer.digest)
            if not link.exists():
                link.symlink_to(Images(cache())._blob(layer.digest))

    def name(self, pattern: str, target: Image | int) -> None:
        """Later names come first. A number is the HTTP status by which the registry refuses."""
        chosen = target if isinstance(target, int) else self._manifest(target)
        self._names.insert(0, (pattern, chosen))
        self._write("names.json", json.dumps(self._names).encode())

    def layer(self, root: Path) -> Blob:
        """The folder as one layer, uncompressed. The times of files stay: a .pyc names that of its source."""
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            hashing = _Hashing(file)
            with tarfile.open(fileobj=hashing, mode="w|", format=tarfile.PAX_FORMAT) as archive:  # type: ignore[call-overload]
                for entry in sorted(root.iterdir()):
                    archive.add(entry, entry.name, filter=_without_names)
        blob = Blob(LAYER, f"sha256:{hashing.hash.hexdigest()}", hashing.size)
        Path(file.name).rename(self._blob(blob.digest))
        return blob

    def _manifest(self, image: Image) -> str:
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": image.settings,
            "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in image.layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._add(CONFIG, config),
            "layers": image.layers,
        }
        return self._add(MANIFEST, manifest).digest

    def _add(self, media_type: str, content: Any) -> Blob:
        data = msgspec.json.encode(content)
        blob = Blob(media_type, f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        self._blob(blob.digest).write_bytes(data)
        return blob

    def _blob(self, digest: str) -> Path:
        return self.folder / "blobs" / digest.removeprefix("sha256:")

    def _write(self, name: str, data: bytes) -> None:
        partial = self.folder / f"{name}.partial"
        partial.write_bytes(data)
        partial.rename(self.folder / name)


class _Hashing:
    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.hash, self.size = file, hashlib.sha256(), 0

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        return self.file.write(data)


def _without_names(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Names of owners are those of this machine."""
    if any(entry.name.startswith(left_out) for left_out in LEFT_OUT):
        return None
    entry.uname = entry.gname = ""
    entry.mtime = int(entry.mtime)
    return entry


# --- the bases


def cache() -> Path:
    """One folder per recipe and set of versions."""
    recipe = (RECIPE, SUITE, *DEBIAN, *(f"{name}=={version(name)}" for name in PACKAGES))
    key = hashlib.sha256(" ".join(recipe).encode()).hexdigest()[:16]
    return cache_folder("node").parent.with_name("node-images") / key


def base(name: str) -> Image:
    try:
        return msgspec.json.decode((cache() / f"{name}.json").read_bytes(), type=Image)
    except FileNotFoundError:
        raise MissingBinaries(f"no image {name} here: run `make node` (two minutes, once)") from None


def build(say: Say) -> None:
    images = Images(cache())
    for name, make in BASES.items():
        if not (images.folder / f"{name}.json").exists():
            say(f"==> the image {name}, once")
            with tempfile.TemporaryDirectory(dir=images.folder) as root:
                made = make(images, Path(root))
            images._write(f"{name}.json", msgspec.json.encode(made))


def _python(images: Images, root: Path) -> Image:
    _debian(root, *DEBIAN)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return Image().on_top(images.layer(root), Env=[path, "LANG=C.UTF-8"], Cmd=["python"])


def _tensorflow(images: Images, root: Path) -> Image:
    pins = [f"{name}=={version(name)}" for name in PACKAGES]
    install(root, f"usr/local/lib/{PYTHON}/dist-packages", pins)
    return base("python").on_top(images.layer(root), Env=["PYTHONUNBUFFERED=1", "TF_CPP_MIN_LOG_LEVEL=1"])


def _busybox(images: Images, root: Path) -> Image:
    """Each tool of it by its own name, as in the usual image."""
    _debian(root / "debian", "busybox-static")
    programs = root / "image" / "bin"
    programs.mkdir(parents=True)
    (root / "image" / "tmp").mkdir(mode=0o777)
    shutil.copy2(root / "debian/bin/busybox", programs)
    tools = subprocess.run(
        [programs / "busybox", "--list"], capture_output=True, text=True, check=True
    ).stdout
    for tool in tools.split():
        if tool != "busybox":
            (programs / tool).symlink_to("busybox")
    return Image().on_top(images.layer(root / "image"), Env=["PATH=/bin"], Cmd=["sh"])


BASES = {"python": _python, "tensorflow": _tensorflow, "busybox": _busybox}


def _debian(root: Path, *packages: str) -> None:
    """Installs Debian packages in a mount namespace: mmdebstrap mounts /proc and /sys into the
    folder, and may be killed before it ends."""
    root.mkdir(exist_ok=True)
    contained = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    debian = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={','.join(packages)}",
        SUITE,
        str(root),
    ]
    done = subprocess.run([*contained, *debian], capture_output=True, text=True)
    if done.returncode:
        raise MissingBinaries(f"mmdebstrap failed:\n{done.stderr[-2000:]}")


def install(root: Path, target: str, requirements: list[str]) -> None:
    """Packages below `target`, and their commands in /usr/local/bin, for the image's own Python."""
    packages = root / target
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    done = subprocess.run(
        [*command, "--target", str(packages), *requirements], capture_output=True, text=True
    )
    if done.returncode:
        raise MissingBinaries(f"pip failed:\n{done.stderr[-2000:]}")
    compile_all = [sys.executable, "-m", "compileall", "-q", "-j", str(os.cpu_count()), str(packages)]
    subprocess.run(compile_all, check=False, stdout=subprocess.DEVNULL)  # templates among them do not compile
    commands = root / "usr/local/bin"
    commands.mkdir(parents=True, exist_ok=True)
    for script in (packages / "bin").glob("*"):
        lines = script.read_bytes().split(b"\n", 1)
        if lines[0].startswith(b"#!") and b"python" in lines[0]:
            (commands / script.name).write_bytes(b"#!/usr/bin/python3\n" + lines[1])
            (commands / script.name).chmod(0o755)
