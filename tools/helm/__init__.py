"""Builds the real `helm` from its Go module, once, into the cache, for the tests of the chart.

    python -m tools.helm

`go.mod` and `go.sum` beside this file pin its version.
"""

import re
import tempfile
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries, cache_folder
from tfyard.controlplane.binaries.build import find_go, go_build
from tfyard.model.callbacks import Say

HERE = Path(__file__).parent
PACKAGE = "helm.sh/helm/v4/cmd/helm"


def locate() -> Path:
    program = cache_folder("helm", HERE) / "helm"
    if not program.exists():
        raise MissingBinaries("no helm here: run `make helm` (needs Go and its modules, 3 minutes, once)")
    return program


def pinned_version() -> str:
    match = re.search(r"helm\.sh/helm/v4 (v\S+)", (HERE / "go.mod").read_text())
    assert match, "go.mod pins helm"
    return match[1]


def find_or_build(say: Say) -> Path:
    try:
        return locate()
    except MissingBinaries:
        return build(say)


def build(say: Say) -> Path:
    """Build helm; the file gets its name when complete. Two builds at once end with the same program."""
    folder = cache_folder("helm", HERE)
    folder.mkdir(parents=True, exist_ok=True)
    version = f"-X helm.sh/helm/v4/internal/version.version={pinned_version()}"
    flags = ["-trimpath", "-buildvcs=false", f"-ldflags=-s -w {version}"]
    say(f"==> Helm {pinned_version()} from its Go module, once (minutes)")
    with tempfile.TemporaryDirectory(dir=folder) as partial:
        target = Path(partial) / "helm"
        go_build(find_go(), HERE, [*flags, "-o", str(target), PACKAGE], lambda text: say(f"    helm: {text}"))
        target.rename(folder / "helm")
    return locate()
