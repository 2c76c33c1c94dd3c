"""One table of pods that come out the same wherever they run: pods/NAME.yaml has what is expected, the objects
that the pod uses, and the pod. It is called NAME-worker-0, as the first worker of a job NAME is."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.cluster.images import HERE

FILES = sorted((HERE / "pods").glob("*.yaml"))
MAIN = "tensorflow"


class Container(msgspec.Struct, frozen=True):
    """None: it is not looked at."""

    code: int | None = None
    restarts: int | None = None
    reason: str | None = None
    log: str | None = None
    message: str | None = None
    lines: dict[str, int] | None = None
    """Line of the log -> how often it is there."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    phase: str
    reason: str
    refused: str
    """Why it never starts; empty: it does."""
    containers: dict[str, Container]
    objects: list[Any]
    template: dict[str, Any]

    def compare(self, name: str, seen: Container) -> None:
        """What was expected of a container and what became of it."""
        expected = self.containers[name]
        for field in ("code", "restarts", "reason", "log"):
            if (value := getattr(expected, field)) is not None:
                assert getattr(seen, field) == value, f"{name}: {field}"
        if expected.lines is not None:
            assert Counter((seen.log or "").splitlines()) == expected.lines
        if expected.message is not None:
            assert expected.message in (seen.message or "")


def read(file: Path) -> Row:
    expected, *objects, template = yaml.safe_load_all(file.read_text())
    words = {word: expected.pop(word, default) for word, default in WORDS.items()}
    found = {name: msgspec.convert(each, Container) for name, each in expected.items()}
    if words["phase"] == "Succeeded" and not words["refused"]:
        good = Container(code=0, restarts=0, reason="Completed")
        found[MAIN] = _merged(good, found.get(MAIN, Container()))
    for container in (*template["spec"].get("initContainers", ()), *template["spec"]["containers"]):
        container["image"] = "any:1"
    return Row(name=file.stem, **words, containers=found, objects=objects, template=template)


WORDS = {"phase": "Succeeded", "reason": "", "refused": ""}


def _merged(one: Container, other: Container) -> Container:
    known = {name: value for name, value in msgspec.structs.asdict(other).items() if value is not None}
    return msgspec.structs.replace(one, **known)
