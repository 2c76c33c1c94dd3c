"""A registry that serves the images of a folder (see images.py) under any name, inside the node.

    python registry.py FOLDER HOST:PORT

containerd asks it for every image, whichever registry the name says. `names.json` maps patterns of names to the
digest of a manifest, or to the status that a registry answers with if it refuses; the first that matches holds."""

import json
import re
import sys
from fnmatch import fnmatchcase
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copyfileobj

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
ERRORS = {
    401: ("UNAUTHORIZED", "authentication required"),
    403: ("DENIED", "requested access to the resource is denied"),
    404: ("MANIFEST_UNKNOWN", "manifest unknown"),
    429: ("TOOMANYREQUESTS", "You have reached your pull rate limit."),
    500: ("UNKNOWN", "unknown error"),
}
ASKED = re.compile(r"/v2/(?P<name>.+)/(?P<kind>manifests|blobs)/(?P<reference>[^/?]+)")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder: Path

    def do_GET(self) -> None:
        if self.path.split("?")[0] == "/v2/":
            self._answer(HTTPStatus.OK, b"{}", "application/json")
        elif match := ASKED.match(self.path):
            answer = self._manifest if match["kind"] == "manifests" else self._blob
            answer(match["name"], match["reference"])
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        print(format % args, file=sys.stderr, flush=True)

    def _manifest(self, name: str, reference: str) -> None:
        chosen = reference if reference.startswith("sha256:") else self._chosen(f"{name}:{reference}")
        if isinstance(chosen, int):
            self._refuse(chosen)
        elif (file := self._file(chosen)).exists():
            self._answer(HTTPStatus.OK, file.read_bytes(), MANIFEST, chosen)
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def _chosen(self, image: str) -> str | int:
        pairs = json.loads((self.folder / "names.json").read_text())
        chosen = (target for pattern, target in pairs if fnmatchcase(image, pattern))
        return next(chosen, int(HTTPStatus.NOT_FOUND))

    def _blob(self, _name: str, digest: str) -> None:
        file = self._file(digest)
        if not file.exists():
            return self._refuse(HTTPStatus.NOT_FOUND)
        self._headers(HTTPStatus.OK, file.stat().st_size, "application/octet-stream", digest)
        if self.command == "GET":
            with file.open("rb") as source:
                copyfileobj(source, self.wfile, 1 << 20)
        return None

    def _file(self, digest: str) -> Path:
        return self.folder / "blobs" / digest.removeprefix("sha256:")

    def _refuse(self, status: int) -> None:
        code, message = ERRORS.get(status, ERRORS[500])
        body = json.dumps({"errors": [{"code": code, "message": message}]}).encode()
        self._answer(status, body, "application/json")

    def _answer(self, status: int, body: bytes, content_type: str, digest: str = "") -> None:
        self._headers(status, len(body), content_type, digest)
        if self.command == "GET":
            self.wfile.write(body)

    def _headers(self, status: int, length: int, content_type: str, digest: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(length))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()


def main(folder: str, address: str) -> None:
    Handler.folder = Path(folder)
    host, _, port = address.rpartition(":")
    ThreadingHTTPServer((host, int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
