"""The jobs of one test, in a namespace of its own, handled as users do."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.cli.running import Result, without
from tests.cluster.clusters import Cluster, until

NUMBERS = itertools.count(1)


class Jobs:
    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder

    @classmethod
    @contextmanager
    def own(cls, cluster: Cluster, folder: Path) -> Iterator[Self]:
        """A new namespace; it goes afterwards, with all that is in it."""
        namespace = f"jobs-{next(NUMBERS)}"
        cluster.kubectl("create", "namespace", namespace)
        yield cls(cluster, namespace, folder)
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")

    def tfyard(self, command: str, *words: str | Path, stdin: bytes = b"") -> Result:
        return self.cluster.tfyard(command, "-n", self.namespace, *words, cwd=self.folder, stdin=stdin)

    def line(self, command: str, *words: str) -> list[str]:
        return [sys.executable, "-m", "tfyard", command, "-n", self.namespace, *words]

    def start(self, command: str, *words: str, **options: Any) -> "subprocess.Popen[str]":
        return self.cluster.start_tfyard(command, "-n", self.namespace, *words, cwd=self.folder, **options)

    def tfyard_without(self, module: str, command: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run tfyard where this module is not installed."""
        program = [sys.executable, "-c", without(module), command, "-n", self.namespace, *words]
        env = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig)}
        return subprocess.run(program, env=env, cwd=self.folder, capture_output=True, text=True)

    def submit(self, text: str, *options: str) -> str:
        """A job file; what is printed."""
        (self.folder / "job.yaml").write_text(text)
        done = self.tfyard("submit", "job.yaml", *options)
        assert done.code == 0, done.err
        return done.out

    def kubectl(self, *args: str, stdin: str = "") -> str:
        return self.cluster.kubectl("-n", self.namespace, *args, stdin=stdin)

    def get(self, *args: str) -> Any:
        return self.cluster.get("-n", self.namespace, *args)

    def phase(self, name: str) -> str:
        return str((self.get("tfjob", name).get("status") or {}).get("phase"))

    def until_phase(self, name: str, phase: str) -> None:
        until(lambda: self.phase(name) == phase, 120)

    def claim(self, name: str) -> Path:
        """The folder of this machine that a claim is."""
        (folder,) = until(lambda: list(self.cluster.claims.glob(f"{self.namespace}_{name}_*")))
        return folder

    def helpers(self) -> list[Any]:
        """Pods that tfyard made for itself, and that are not being deleted."""
        pods = self.get("pods", "-l", "tfyard.dev/helper")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
