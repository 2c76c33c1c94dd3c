"""`requirements` of a job that runs here: the active environment is used as it is, and what it lacks is told."""

import subprocess
from pathlib import Path
from shlex import quote

from tfyard.local.interpreter import Interpreter

LONGEST = 60
PROGRAM = """
import sys
from importlib.metadata import PackageNotFoundError, version
try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement

def is_met(wanted):
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return False
    return wanted.specifier.contains(found, prereleases=True)

for line in open(sys.argv[1], encoding="utf-8"):
    line = line.partition(" #")[0].strip()
    if not line or line[0] in "#-" or "://" in line:
        continue
    try:
        wanted = Requirement(line)
    except ValueError:
        continue
    if (wanted.marker is None or wanted.marker.evaluate()) and not is_met(wanted):
        print(line)
"""
"""Run by the interpreter of the tasks, whose packages these are. pip itself reads options and addresses."""


def warning(python: Interpreter, file: Path) -> str:
    """What is missing, and the command that installs it; empty if nothing is."""
    command = [python.path, "-c", PROGRAM, str(file)]
    fix = f"{quote(python.path)} -m pip install -r {quote(str(file))}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=True)
    except (OSError, subprocess.SubprocessError):
        return f"requirements: it was not possible to look for the packages; to install them: {fix}"
    missing = done.stdout.splitlines()
    return f"requirements: the environment does not have {', '.join(missing)}; {fix}" if missing else ""
