"""Writes the go.mod and go.sum that pin a version of Kubernetes with its etcd, in a folder beside this file.

    python -m tools.versions.pin 1.33.13

Kubernetes' own go.mod takes its parts from folders of its repository; here they are the modules of that release.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

from tfyard.controlplane.binaries.build import PACKAGES, find_go
from tfyard.controlplane.binaries.download import ETCD_MODULE
from tools.versions import HERE

KUBERNETES = "k8s.io/kubernetes"


def pin(version: str) -> Path:
    major, minor, patch = version.split(".")
    folder = HERE / f"kubernetes-{major}.{minor}"
    folder.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        (folder / name).unlink(missing_ok=True)
    theirs = Path(
        json.loads(_go("mod", "download", "-json", f"{KUBERNETES}@v{version}"))["GoMod"]
    ).read_text()
    go, etcd = (_first(rf"^\s*{word} v?(\S+)", theirs) for word in ("go", "go.etcd.io/etcd/api/v3"))
    parts = re.findall(r"(\S+) => \./staging/", theirs)
    replaced = "".join(f"\t{part} => {part} v0.{minor}.{patch}\n" for part in parts)
    text = f"module tfyard.dev/control-plane\n\ngo {go}\n\nreplace (\n{replaced})\n"
    (folder / "go.mod").write_text(text)
    wanted = [f"{each}@v{etcd if each == ETCD_MODULE else version}" for each in PACKAGES.values()]
    _go("get", "-tool", *wanted, folder=folder)
    return folder


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    assert found, pattern
    return found[1]


def _go(*words: str, folder: Path = HERE) -> str:
    return subprocess.run(
        [find_go(), *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


if __name__ == "__main__":
    for version in sys.argv[1:]:
        print(pin(version))
