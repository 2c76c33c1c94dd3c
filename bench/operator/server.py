"""The operator's writes: those that the apiserver counted, without those of this benchmark."""

import re
from collections import Counter
from typing import Any

from msgspec import Struct

from tfyard.kube import Client, Request, requests

LINE = re.compile(r"^(apiserver_request_total|apiserver_request_body_size_bytes_sum)\{(.*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="([^"]*)"')
WRITES = ("POST", "PUT", "PATCH", "APPLY")
NOT_OF_JOBS = ("leases", "nodes", "namespaces", "flowschemas", "prioritylevelconfigurations", "ipaddresses")
"""Resources that the server and the kubelet write for themselves, at any time."""
UNDER_NAMESPACE = re.compile(r"/namespaces/[^/]+/([^/?]+)(?:/[^/?]+(?:/([^/?]+))?)?")


class Counts(Struct, frozen=True):
    """Requests by verb and resource, including refused ones, and the bytes of their bodies."""

    writes: Counter[str] = Counter()
    sent: int = 0

    def since(self, before: "Counts") -> "Counts":
        return Counts(Counter(self.writes) - before.writes, self.sent - before.sent)


class Counting(Client):
    """A client that counts its writes, so that they can be subtracted."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._writes: Counter[str] = Counter()
        self._sent = 0

    async def send(self, request: Request, *into: Any) -> Any:
        match = UNDER_NAMESPACE.search(request.path)
        if match and request.method in WRITES and match[1] not in NOT_OF_JOBS:
            self._writes[_name(request.method, match[1], match[2] or "")] += 1
            self._sent += len(request.body or b"")
        return await super().send(request, *into)

    def counts(self) -> Counts:
        return Counts(Counter(self._writes), self._sent)


async def counts(client: Client) -> Counts:
    """The writes that the apiserver counted. Its metrics are text, not JSON, so they are read as a stream."""
    async with client.stream(requests.get("/metrics"), 30.0) as chunks:
        text = b"".join([chunk async for chunk in chunks]).decode()
    writes: Counter[str] = Counter()
    sent = 0
    for match in filter(None, map(LINE.match, text.splitlines())):
        labels = dict(LABEL.findall(match[2]))
        if labels["resource"] in NOT_OF_JOBS:
            continue
        if match[1] == "apiserver_request_total" and labels["verb"] in WRITES:
            name = _name(labels["verb"], labels["resource"], labels["subresource"])
            writes[name] += int(float(match[3]))
        elif match[1] != "apiserver_request_total" and labels["verb"] != "delete":
            sent += int(float(match[3]))
    return Counts(writes, sent)


def _name(verb: str, resource: str, subresource: str) -> str:
    return f"{verb} {resource}" + (f"/{subresource}" if subresource else "")
