"""Programs of others that only tests use. What is not in PATH is got once into the cache, and never installed.

    python -m tools.programs promtool actionlint

Prometheus is Debian's package, which apt verifies. It is unpacked, because installing it needs root and starts a
server. actionlint is built from its Go module, which Go verifies.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries
from tfyard.controlplane.binaries.build import find_go

ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def locate(program: str) -> str:
    places = (os.environ.get("PATH", ""), str(_cache()))
    if found := shutil.which(program, path=os.pathsep.join(places)):
        return found
    raise MissingBinaries(f"no {program} here: run `make {program}`, or install it")


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tfyard" / "programs"


def obtain(program: str) -> str:
    """The program, of PATH, of the cache, or new. Two calls at once end with the same file."""
    try:
        return locate(program)
    except MissingBinaries:
        _cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_cache()) as partial:
        try:
            made = SOURCES[program](Path(partial))
        except (OSError, subprocess.CalledProcessError) as problem:
            why = (getattr(problem, "stderr", "") or str(problem)).strip()
            raise MissingBinaries(f"cannot get {program}: {why}") from problem
        made.rename(_cache() / program)
    return locate(program)


def _of_debian(program: str) -> Callable[[Path], Path]:
    def unpack(folder: Path) -> Path:
        _run(folder, "apt-get", "download", "-qq", "prometheus")
        (package,) = folder.glob("*.deb")
        _run(folder, "dpkg-deb", "--extract", package.name, "tree")
        return folder / "tree/usr/bin" / program

    return unpack


def _of_go(module: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        _run(folder, str(find_go()), "install", module, GOBIN=str(folder), GOFLAGS="")
        (program,) = folder.iterdir()
        return program

    return build


def _run(folder: Path, *command: str, **environment: str) -> None:
    environment = {**os.environ, **environment}
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)


SOURCES = {
    "promtool": _of_debian("promtool"),
    "prometheus": _of_debian("prometheus"),
    "actionlint": _of_go(ACTIONLINT),
}


def main(programs: list[str]) -> int:
    for program in programs:
        try:
            print(obtain(program))
        except MissingBinaries as problem:
            print(f"tests will be skipped: {problem}", file=sys.stderr)
            return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
