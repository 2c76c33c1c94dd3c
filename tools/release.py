"""Builds all files of a release but the image, looks whether they belong together, and tries them.

    python -m tools.release [--tag v0.1.0] FOLDER

Without a tag nothing has to be final: that is `make release-dry-run`, which needs no network.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from tfyard import __version__
from tools import helm, sbom

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "tfyard"
SUMS = "SHA256SUMS"
LEFT = "left to the release workflow: the image of each platform, signatures, publishing"


def problems(root: Path, version: str, tag: str) -> list[str]:
    """All that keeps this version from being released under this tag."""
    return list(_problems(root, version, tag))


def _problems(root: Path, version: str, tag: str) -> Iterator[str]:
    chart = yaml.safe_load((root / "charts/tfyard/Chart.yaml").read_text())
    for field in ("version", "appVersion"):
        if chart[field] != version:
            yield f"charts/tfyard/Chart.yaml: {field} is {chart[field]}, and the package is {version}"
    if tag and tag != f"v{version}":
        yield f"the tag is {tag}, and the package is {version}: src/tfyard/__init__.py"
    if tag and not notes(root, version):
        yield f"CHANGELOG.md: has no section `## {version}`"
    if tag and notes(root, "Unreleased"):
        yield f"CHANGELOG.md: what is below `## Unreleased` belongs below `## {version}`"
    if not (root / f"schemas/crds-{version}.json").exists():
        yield f"schemas/crds-{version}.json is missing: python tools/crd_snapshot.py"


def notes(root: Path, heading: str) -> str:
    """What CHANGELOG.md says of a version."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(heading)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return found[1].strip() if found else ""


def build(folder: Path) -> list[Path]:
    """The files of the release; `folder` is made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _package(folder)
    subprocess.run([helm.locate(), "lint", "--quiet", str(CHART)], check=True)
    command = [helm.locate(), "package", str(CHART), "--destination", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    bill = json.dumps(sbom.bill(sbom.LOCK.read_text()), indent=2)
    (folder / "sbom.json").write_text(f"{bill}\n")
    shutil.copy(ROOT / "manifests" / "install.yaml", folder)
    files = sorted(folder.iterdir())
    (folder / SUMS).write_text("".join(f"{_sum(file)}  {file.name}\n" for file in files))
    (folder / "notes.md").write_text(notes(ROOT, __version__) + "\n")
    return files


def _package(folder: Path) -> None:
    """Wheel and sdist, which must come out the same each time: whoever builds the tag gets what was published."""
    with tempfile.TemporaryDirectory() as again:
        for target in (str(folder), again):
            command = [sys.executable, "-m", "hatchling", "build", "-d", target]
            subprocess.run(
                command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        for file in Path(again).iterdir():
            if _sum(file) != _sum(folder / file.name):
                raise SystemExit(f"{file.name} does not come out the same twice")


def try_wheel(wheel: Path) -> str:
    """What `tfyard version` of the wheel prints, without the sources of this folder."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        environment = {**os.environ, "PYTHONPATH": folder}
        command = [sys.executable, "-P", "-m", "tfyard", "version"]
        done = subprocess.run(
            command, cwd=folder, env=environment, check=True, capture_output=True, text=True
        )
    return done.stdout.strip()


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", default="")
    given = parser.parse_args()
    if found := problems(ROOT, __version__, given.tag):
        print("\n".join(f"not ready: {problem}" for problem in found), file=sys.stderr)
        return 1
    files = build(given.folder)
    (wheel,) = given.folder.glob("*.whl")
    said = try_wheel(wheel)
    if __version__ not in said:
        print(f"{wheel.name} says that it is {said}", file=sys.stderr)
        return 1
    for file in files:
        print(f"{_sum(file)[:12]}  {file.stat().st_size:>9,}  {file}")
    print(f"the wheel says: {said}\n{LEFT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
