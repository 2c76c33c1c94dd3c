"""The page for many people, as a process, and people who read it by plain requests with real tokens."""

import asyncio
import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from tests.cli.test_describe import permit
from tests.controller.cluster import tfjob
from tests.remote.conftest import until
from tfyard.kube import requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.testing import ControlPlane, builders

READ = {"apiGroups": ["kubeflow.org"], "resources": ["tfjobs"], "verbs": ["get", "list", "watch"]}
EDIT = {**READ, "verbs": [*READ["verbs"], "create", "patch", "delete"]}
PODS = {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list", "watch"]}
FORWARD = {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["create"]}


class Answer(Struct):
    status: int
    headers: http.client.HTTPMessage
    text: str


class Reader:
    """A browser by hand: it keeps cookies, and says where a form was."""

    def __init__(self, host: str, base: str = "/", **headers: str) -> None:
        self.host, self.base, self.cookies = host, base, dict[str, str]()
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None, **headers: str) -> Answer:
        given = {**self.headers, **{name.replace("_", "-"): value for name, value in headers.items()}}
        if self.cookies:
            given["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        body = urlencode(fields or {}) if method == "POST" else None
        if body is not None:
            given = {
                "Content-Type": "application/x-www-form-urlencoded",
                "Origin": f"http://{self.host}",
                **given,
            }
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, self.base + path, body, given)
            answer = connection.getresponse()
            self._keep(answer.headers)
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def _keep(self, headers: http.client.HTTPMessage) -> None:
        for text in headers.get_all("Set-Cookie", []):
            for name, cookie in SimpleCookie(text).items():
                self.cookies.pop(name, None)
                if cookie.value:
                    self.cookies[name] = cookie.value

    def get(self, path: str = "", **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def sign_in(self, token: str, namespaces: str = "") -> Answer:
        return self.ask("POST", "sign-in", {"token": token, "namespaces": namespaces})

    def until_shown(self, path: str, *words: str) -> str:
        """The page, once it has all these words."""
        seen = ""

        def look() -> bool:
            nonlocal seen
            seen = self.get(path).text
            return all(word in seen for word in words)

        until(look, f"{words} in {path}")
        return seen


class Many(Struct):
    host: str
    process: "subprocess.Popen[str]"

    def reader(self, base: str = "/", **headers: str) -> Reader:
        return Reader(self.host, base, **headers)


@contextmanager
def many(kubeconfig: Path, *words: str, said: list[str] | None = None) -> Iterator[Many]:
    """`said`: gets all that the process has written, once it has ended."""
    command = [sys.executable, "-m", "tfyard", "dashboard", "--in-cluster", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(
        [*command, "--bind", "127.0.0.1:0", *words],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        first = ""
        try:
            assert process.stdout
            first = process.stdout.readline()
            assert first.startswith("dashboard: http://127.0.0.1:"), process.stderr and process.stderr.read()
            yield Many(first.split("/")[2], process)
        finally:
            process.terminate()
            rest = process.communicate(timeout=60)
            assert "Traceback" not in rest[1], rest[1]
            if said is not None:
                said += [first, *rest]


def account(plane: ControlPlane, namespace: str, name: str, rules: Sequence[dict[str, Any]] = ()) -> str:
    """A token of a new user, who may do this in this namespace."""

    async def make() -> str:
        async with plane.client() as client:
            await builders.create_service_account(client, namespace, name)
            return await builders.service_account_token(client, namespace, name)

    token = asyncio.run(make())
    if rules:
        with SyncClient(plane.admin) as client:
            permit(client, namespace, f"system:serviceaccount:{namespace}:{name}", list(rules))
    return token


def add_job(plane: ControlPlane, namespace: str, name: str) -> None:
    with SyncClient(plane.admin) as client:
        client.send(requests.create(TFJOBS.path(namespace), tfjob(name, Worker=2)))


def add_namespace(plane: ControlPlane) -> str:
    async def make() -> str:
        async with plane.client() as client:
            return await builders.create_namespace(client)

    return asyncio.run(make())
