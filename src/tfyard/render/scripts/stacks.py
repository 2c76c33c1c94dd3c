# Prints, as JSON, what the Python programs of a container are doing, as far as py-spy can tell. Where it cannot, a
# program that catches SIGUSR1 is sent it: faulthandler.register(signal.SIGUSR1) lets it print its stacks.
#   stacks.py [PID]    this process and those below it; else those of the same container
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys

MOST = 8


def read(pid: int, name: str) -> str:
    try:
        with open("/proc/{}/{}".format(pid, name), "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def field(pid: int, name: str) -> str:
    lines = read(pid, "status").split("\n")
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name + ":")), "0")


def is_below(pid: int, root: int) -> bool:
    while pid and pid != root:
        pid = int(field(pid, "PPid"))
    return pid == root


def is_python(pid: int) -> bool:
    try:
        return os.path.basename(os.readlink("/proc/{}/exe".format(pid))).startswith(("python", "pypy"))
    except OSError:
        return False


def environ(pid: int) -> dict[str, str]:
    return dict(each.partition("=")[::2] for each in read(pid, "environ").split("\0"))


def is_ours(pid: int) -> bool:
    """Containers of a pod, or of several, may share a PID namespace: others are left alone."""
    same_pod = environ(pid).get("HOSTNAME") == os.environ.get("HOSTNAME")
    return same_pod and read(pid, "cgroup") == read(os.getpid(), "cgroup")


def tool(pid: int) -> str | None:
    beside, theirs = os.path.dirname(read(pid, "cmdline").partition("\0")[0]), environ(pid).get("PATH", "")
    folders = (beside, theirs, os.path.dirname(sys.executable), os.environ.get("PATH", ""))
    return shutil.which("py-spy", path=os.pathsep.join(filter(None, folders)))


def dump(pid: int) -> dict[str, object]:
    found = {"pid": pid, "command": " ".join(read(pid, "cmdline").split("\0")).strip()[:200]}
    spy, problem = tool(pid), "py-spy is not installed"
    if spy is not None:
        command = [spy, "dump", "--pid", str(pid)]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
            if done.returncode == 0:
                return {**found, "stacks": done.stdout.decode("utf-8", "replace")}
            problem = "py-spy: " + done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = "py-spy: {}".format(error)
    if int(field(pid, "SigCgt"), 16) >> (signal.SIGUSR1 - 1) & 1:
        os.kill(pid, signal.SIGUSR1)
        return {**found, "asked": True, "problem": problem}
    return {**found, "problem": problem + ", and the program does not catch SIGUSR1"}


root = int(sys.argv[1]) if len(sys.argv) > 1 else 0
pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())
programs = [pid for pid in pids if is_python(pid) and (is_below(pid, root) if root else is_ours(pid))]
print(json.dumps([dump(pid) for pid in programs[:MOST]]))
