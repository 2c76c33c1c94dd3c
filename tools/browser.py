"""What the tests of the page need beside Python: a browser, nginx, and the accessibility rules of axe-core.

    python -m tools.browser

installs Debian's packages where that is possible (root and apt), and says what to install where it is not.
axe-core comes from the npm registry into the cache; it is never part of this repository.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tfyard.controlplane.binaries import MissingBinaries

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PACKAGES = {"chromium": BROWSERS, "nginx-light": ("nginx",)}
"""Debian's package -> its programs, of which one is enough."""
PLACES = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
AXE = "4.14.0"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
"""A browser that asks nobody but the page."""


def locate(*programs: str) -> str:
    for program in programs:
        if found := shutil.which(program, path=PLACES):
            return found
    raise MissingBinaries(f"no {programs[0]} here: run `make browser`, or install it")


def browser() -> str:
    return locate(*BROWSERS)


def axe() -> Path:
    """The script with the rules."""
    script = _cache() / "axe.min.js"
    if not script.exists():
        raise MissingBinaries("no axe-core here: run `make browser` (needs npm)")
    return script


def _cache() -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "tfyard" / "axe-core" / AXE


def install() -> list[str]:
    """Installs what is missing; the result says what could not be."""
    missing = [package for package, programs in PACKAGES.items() if not _is_there(programs)]
    problems = []
    if missing:
        problems += _apt(missing)
    try:
        axe()
    except MissingBinaries:
        problems += _fetch_axe()
    return problems


def _is_there(programs: tuple[str, ...]) -> bool:
    return any(shutil.which(program, path=PLACES) for program in programs)


def _apt(packages: list[str]) -> list[str]:
    by_hand = f"install them by hand: apt-get install {' '.join(packages)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return [f"{', '.join(packages)}: only root can install them, and only with apt; {by_hand}"]
    print(f"==> {', '.join(packages)} (Debian's, once)", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run(
            ["apt-get", *words], capture_output=True, text=True, check=False, env=environment
        )
        if done.returncode and words[0] == "install":
            return [f"{', '.join(packages)}: {done.stderr.strip()[-300:]}; {by_hand}"]
    return []


def _fetch_axe() -> list[str]:
    folder = _cache()
    with tempfile.TemporaryDirectory() as partial:
        npm = ["npm", "pack", f"axe-core@{AXE}", "--silent", "--pack-destination", partial]
        try:
            subprocess.run(npm, capture_output=True, text=True, check=True, cwd=partial)
        except (OSError, subprocess.CalledProcessError) as problem:
            return [f"axe-core: npm could not get it: {getattr(problem, 'stderr', '') or problem}"]
        (archive,) = Path(partial).glob("*.tgz")
        with tarfile.open(archive) as packed:
            script = packed.extractfile("package/axe.min.js")
            assert script is not None
            folder.mkdir(parents=True, exist_ok=True)
            made = folder / f"axe.{os.getpid()}"
            made.write_bytes(script.read())
            made.rename(folder / "axe.min.js")
    return []


def main() -> int:
    problems = install()
    for problem in problems:
        print(f"tests of the page will be skipped: {problem}", file=sys.stderr)
    if not problems:
        print(f"the tests of the page have {browser()}, nginx and axe-core {AXE}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
