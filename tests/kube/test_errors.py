"""Every failed answer is a type; callers never compare numbers."""

import pytest

from tfyard import kube
from tfyard.errors import TfyardError
from tfyard.kube.errors import ErrorStatus, build_error


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", kube.Refused),
        (401, "Unauthorized", kube.Unauthorized),
        (403, "Forbidden", kube.Forbidden),
        (404, "NotFound", kube.NotFound),
        (409, "AlreadyExists", kube.AlreadyExists),
        (409, "Conflict", kube.Conflict),
        (410, "Expired", kube.Expired),
        (422, "Invalid", kube.Unprocessable),
        (429, "TooManyRequests", kube.TooManyRequests),
        (500, "InternalError", kube.ServerFault),
        (504, "Timeout", kube.ServerFault),
    ],
)
def test_codes_and_reasons_become_types(code: int, reason: str, expected: type[Exception]) -> None:
    error = build_error(code, b'{"code":%d,"reason":"%s","message":"no"}' % (code, reason.encode()))
    assert type(error) is expected
    assert isinstance(error, TfyardError)
    assert str(error) == f"no ({code} {reason})"


def test_a_proxy_that_answers_in_html_is_quoted() -> None:
    error = build_error(502, b"<html>Bad gateway</html>", retry_after="3")
    assert isinstance(error, kube.ServerFault)
    assert error.status == ErrorStatus(502, "", "<html>Bad gateway</html>")
    assert error.retry_after == 3


def test_what_may_succeed_later_is_transient_and_what_was_refused_is_not() -> None:
    assert issubclass(kube.TooManyRequests, kube.Transient)
    assert issubclass(kube.Unreachable, kube.Transient)
    assert not issubclass(kube.Conflict, kube.Transient)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("86400", 60.0), ("soon", None), ("", None), ("²", None), ("9" * 400, 60.0)],
)
def test_a_server_is_not_waited_for_longer_than_a_minute(header: str, seconds: float | None) -> None:
    assert getattr(build_error(429, b"{}", header), "retry_after", None) == seconds
