"""A small server that answers as MLflow does, remembers what it was asked, and can be slow, refuse or redirect."""

import json
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

API = "/api/2.0/mlflow/"
Answer = tuple[int, Any]


class Asked(Struct):
    method: str
    path: str
    """As it was sent: to a proxy, a whole URL."""
    headers: dict[str, str]
    body: Any


class SmallMLflow:
    """`status`, if it is not 0, is every answer's; `delay` is before each."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.runs: dict[str, dict[str, Any]] = {}
        self.experiments: dict[str, str] = {}
        self.status, self.delay = 0, 0.0
        self.lost: list[str] = []
        """Calls that are carried out, and whose answer is lost; each once."""
        self.location = self.page = ""
        self.uri = ""

    def calls(self, name: str) -> list[Asked]:
        return [each for each in self.asked if urlsplit(each.path).path == API + name]

    @property
    def run(self) -> dict[str, Any]:
        """The only run."""
        (run,) = self.runs.values()
        return run

    def metrics(self, run: str = "") -> dict[str, list[tuple[int, Any]]]:
        found: dict[str, list[tuple[int, Any]]] = {}
        for call in self.calls("runs/log-batch"):
            if not run or call.body["run_id"] == run:
                for each in call.body.get("metrics") or ():
                    found.setdefault(each["key"], []).append((each["step"], each["value"]))
        return found

    def answer(self, name: str, query: dict[str, list[str]], body: Any) -> Answer:
        handlers: dict[str, Callable[[], Answer]] = {
            "experiments/get-by-name": lambda: self._experiment(query["experiment_name"][0]),
            "experiments/create": lambda: self._new_experiment(body["name"]),
            "runs/create": lambda: self._new_run(body),
            "runs/update": lambda: self._update(body),
            "runs/log-batch": lambda: self._log(body),
            "runs/search": lambda: self._search(body),
            "runs/delete": lambda: (200, self.runs.pop(body["run_id"]) and {}),
        }
        return handlers[name]()

    def _experiment(self, name: str) -> Answer:
        if name not in self.experiments:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"no experiment {name}"}
        return 200, {"experiment": {"experiment_id": self.experiments[name], "lifecycle_stage": "active"}}

    def _new_experiment(self, name: str) -> Answer:
        self.experiments[name] = str(len(self.experiments) + 1)
        return 200, {"experiment_id": self.experiments[name]}

    def _new_run(self, body: Any) -> Answer:
        run = f"run{len(self.runs) + 1}"
        tags = {each["key"]: each["value"] for each in body["tags"]}
        self.runs[run] = {"status": "RUNNING", "name": body["run_name"], "tags": tags, "params": {}}
        return 200, {"run": {"info": {"run_id": run, "experiment_id": body["experiment_id"]}}}

    def _update(self, body: Any) -> Answer:
        if body["run_id"] not in self.runs:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such run"}
        self.runs[body["run_id"]] |= {name: body[name] for name in ("status", "end_time") if name in body}
        return 200, {"run_info": {"run_id": body["run_id"], "experiment_id": "1"}}

    def _search(self, body: Any) -> Answer:
        """The runs with a tag, as in: tags.`a` = 'b'."""
        _, name, _, value, _ = re.split("[`']", body["filter"])
        found = [run for run, each in self.runs.items() if each["tags"].get(name) == value]
        experiment = body["experiment_ids"][0]
        return 200, {"runs": [{"info": {"run_id": run, "experiment_id": experiment}} for run in found]}

    def _log(self, body: Any) -> Answer:
        run = self.runs[body["run_id"]]
        run["params"] |= {each["key"]: each["value"] for each in body.get("params") or ()}
        run["tags"] |= {each["key"]: each["value"] for each in body.get("tags") or ()}
        assert len(body.get("metrics") or ()) <= 1000
        return 200, {}


@contextmanager
def serving(port: int = 0, pem: Path | None = None) -> Iterator[SmallMLflow]:
    """`pem`: a certificate and its key; with it, the server speaks TLS."""
    small = SmallMLflow()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(data or b"null")
            small.asked.append(Asked(self.command, self.path, dict(self.headers), body))
            time.sleep(small.delay)
            parts = urlsplit(self.path)
            if small.status:
                status, said = small.status, {}
            else:
                name = parts.path.removeprefix(API)
                status, said = small.answer(name, parse_qs(parts.query), body)
                if name in small.lost:
                    small.lost.remove(name)
                    self.close_connection = True
                    return
            text = small.page.encode() or json.dumps(said).encode()
            self.send_response(status)
            if small.location:
                self.send_header("Location", small.location)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            return  # the client was killed

    server = Server(("127.0.0.1", port), Handler)
    small.uri = f"http{'s' if pem else ''}://127.0.0.1:{server.server_port}"
    if pem is not None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pem)
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield small
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
