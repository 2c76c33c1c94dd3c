"""Jobs in trouble, and what `tfyard why` is to say of them."""

import json
import time
from typing import Any

from msgspec import Struct

from tests.cluster.clusters import until
from tests.cluster.jobs import Jobs
from tests.remote.situations import job
from tests.wording import is_said
from tfyard.model import Manifest

PATIENCE = 150
"""Seconds until all that was created is in its trouble."""
SLEEP = ["sleep", "600"]


class Situation(Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    words: str
    """In the sentence."""
    fix: str = ""
    code: int
    restart: str = "Never"
    container: Manifest = {}
    pod: Manifest = {}

    def manifest(self) -> Manifest:
        container = {"command": SLEEP, **self.container}
        return job(self.name, restart=self.restart, container=container, **self.pod)


class Troubles(Jobs):
    """Many jobs that are in trouble at the same time."""

    def create(self, *manifests: Manifest) -> None:
        self.cluster.apply(*manifests, namespace=self.namespace)
        self._end = time.monotonic() + PATIENCE

    def why(self, name: str) -> Any:
        done = self.tfyard("why", name, "-o", "json")
        assert done.code != 2, done.err
        return {**json.loads(done.out), "code": done.code}

    def until_told(self, expected: Situation) -> None:
        """Until the first cause is the expected one; the assertion shows the last answer."""
        answer: Any = {}

        def is_told() -> bool:
            answer.update(self.why(expected.name))
            kinds = [cause["kind"] for cause in answer["causes"]]
            return (answer["code"], kinds[:1]) == (expected.code, [expected.kind] if expected.kind else [])

        try:
            until(is_told, max(self._end - time.monotonic(), 5))
        except AssertionError as problem:
            raise AssertionError(json.dumps(answer, indent=1)) from problem
        assert is_said(expected.words, answer["sentence"]), answer["sentence"]
        if expected.fix:
            assert is_said(expected.fix, answer["causes"][0]["fix"]), answer["causes"][0]["fix"]
