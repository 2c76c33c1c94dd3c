"""Where a server listens."""

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model.names import OPERATOR_PORT


class Bind(Struct, frozen=True):
    """Address to listen on, by default on this machine only; pods use `:8080`, for the kubelet's probes."""

    host: str = "127.0.0.1"
    port: int = OPERATOR_PORT

    @classmethod
    def parse(cls, text: str) -> "Bind":
        """Parse `:8080`, `127.0.0.1:8080` or `[::1]:8080`, as in Go; an empty host means all."""
        host, colon, port = text.rpartition(":")
        if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
            raise Usage(f"{text!r} is not an address to listen on; write host:port, such as :8080")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))
