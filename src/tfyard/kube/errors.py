"""The errors of requests to an apiserver, as types.

KubeError
├── BadKubeconfig                  no cluster, or no credentials
├── PortRefused                    a pod has nothing that listens on a port
├── Undecodable                    an answer that is not JSON, or not of the expected type
├── Transient                      the same request may succeed later
│   ├── Unreachable                no answer; `sent` says whether the server may have acted
│   ├── TooManyRequests     429
│   └── ServerFault         5xx
└── Refused                        the server understood the request and refused it
    ├── Unauthorized        401    ├── AlreadyExists   409, reason AlreadyExists
    ├── Forbidden           403    ├── Conflict        any other 409: stale resourceVersion, quota contention
    ├── NotFound            404    ├── Expired         410: resourceVersion or page is compacted away
    └── Unprocessable       422
"""

from typing import Any

import msgspec

from tfyard.errors import TfyardError
from tfyard.model.corrupt_json import CORRUPT_JSON


class ErrorStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The body of every failed answer (and of an ERROR event in a watch)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: dict[str, Any] | None = None


class KubeError(TfyardError):
    """Base of all errors of this package."""


class BadKubeconfig(KubeError):
    pass


class PortRefused(KubeError):
    """The pod exists, but nothing listens on the port."""


class Undecodable(KubeError):
    """An answer that cannot be decoded; `answer` is its bytes."""

    def __init__(self, message: str, answer: bytes) -> None:
        super().__init__(message)
        self.answer = answer

    @property
    def detail(self) -> str:
        """What cannot be decoded, and why: `status.startTime: Invalid RFC3339 encoded datetime`."""
        why, _, where = str(self.__cause__ or self).partition(" - at `$.")
        return f"{where.rstrip('`')}: {why}" if where else why


class Transient(KubeError):
    """An error that may go away: retry after `retry_after` seconds, or the caller's own back-off."""

    retry_after: float | None = None


def retry_after(problem: object) -> float:
    """Seconds after which the server, as far as it has answered so, may be asked again."""
    return (problem.retry_after or 0.0) if isinstance(problem, Transient) else 0.0


class Unreachable(Transient):
    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Answered(KubeError):
    """Errors with a message from the server."""

    def __init__(self, status: ErrorStatus, retry_after: float | None = None) -> None:
        super().__init__(f"{status.message or status.reason} ({status.code} {status.reason})".strip())
        self.status = status
        self.retry_after = retry_after

    @property
    def causes(self) -> set[str]:
        """Finer reasons than the code: a 403 may be a quota, a permission, or a terminating namespace."""
        causes = (self.status.details or {}).get("causes") or []
        return {str(cause.get("reason")) for cause in causes}


class TooManyRequests(Answered, Transient):
    pass


class ServerFault(Answered, Transient):
    pass


class Refused(Answered):
    pass


class Unauthorized(Refused):
    pass


class Forbidden(Refused):
    pass


class NotFound(Refused):
    pass


class AlreadyExists(Refused):
    pass


class Conflict(Refused):
    pass


class Expired(Refused):
    pass


class Unprocessable(Refused):
    pass


BY_CODE: dict[int, type[Refused] | type[TooManyRequests]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Unprocessable,
    429: TooManyRequests,
}

_decoder = msgspec.json.Decoder(ErrorStatus)
LONGEST_RETRY_AFTER = 60.0
"""Longest wait in seconds. A server or a proxy may ask for hours, and be back in a moment."""


def build_error(code: int, body: bytes, retry_after: str = "") -> KubeError:
    """The typed error of an answer. A proxy may answer in HTML, which then is the message."""
    try:
        status = _decoder.decode(body)
    except CORRUPT_JSON:
        status = ErrorStatus(message=body[:300].decode(errors="replace").strip())
    is_number = retry_after.isascii() and retry_after.isdigit()
    seconds = min(float(retry_after), LONGEST_RETRY_AFTER) if is_number else None
    return from_status(msgspec.structs.replace(status, code=code), seconds)


def from_status(status: ErrorStatus, retry_after: float | None = None) -> KubeError:
    if status.reason == "AlreadyExists":
        return AlreadyExists(status)
    fallback = ServerFault if status.code >= 500 else Refused
    return BY_CODE.get(status.code, fallback)(status, retry_after)
