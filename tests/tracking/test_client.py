"""The client against real servers: credentials go to one of them, and nowhere else."""

import base64

import pytest

from tests.ports import reserved_port
from tests.tracking.server import SmallMLflow
from tfyard.tracking.addresses import is_loopback, public_address, with_credentials_in
from tfyard.tracking.client import MLflowRefused, MLflowServer, MLflowUnreachable

TOKEN = {"MLFLOW_TRACKING_TOKEN": "t0ken"}


def ask(server: MLflowServer) -> None:
    try:
        server.post("experiments/create", {"name": "a"})
    finally:
        server.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed_and_the_token_stays(
    status: int, mlflow: SmallMLflow, other: SmallMLflow
) -> None:
    mlflow.status, mlflow.location = status, f"{other.uri}/login?next=s3cret"
    with pytest.raises(
        MLflowRefused, match=f"redirects to {other.uri}/login, which is not followed"
    ) as refused:
        ask(MLflowServer(mlflow.uri, TOKEN))
    assert "s3cret" not in str(refused.value)
    assert (len(mlflow.asked), other.asked) == (1, [])
    assert mlflow.asked[0].headers["Authorization"] == "Bearer t0ken"


def test_a_password_comes_before_a_token_as_in_mlflows_own_client(mlflow: SmallMLflow) -> None:
    environ = {**TOKEN, "MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "hunter2"}
    ask(MLflowServer(mlflow.uri, environ))
    sent = mlflow.asked[0].headers["Authorization"]
    assert sent == f"Basic {base64.b64encode(b'me:hunter2').decode()}"


@pytest.mark.parametrize(
    ("status", "error", "text"),
    [
        (401, MLflowRefused, r"refuses these credentials \(401\); set MLFLOW_TRACKING_USERNAME"),
        (403, MLflowRefused, r"refuses these credentials \(403\)"),
        (404, MLflowRefused, "no MLflow server is there"),
        (429, MLflowUnreachable, "answers with 429"),
        (503, MLflowUnreachable, "answers with 503"),
    ],
)
def test_what_may_pass_is_told_from_what_will_not(
    status: int, error: type[Exception], text: str, mlflow: SmallMLflow
) -> None:
    mlflow.status = status
    with pytest.raises(error, match=text):
        ask(MLflowServer(mlflow.uri, {}))


def test_a_login_page_is_no_answer(mlflow: SmallMLflow) -> None:
    mlflow.page = "<html>please log in</html>"
    with pytest.raises(MLflowRefused, match="answers with a web page"):
        ask(MLflowServer(mlflow.uri, {}))


def test_a_server_that_is_gone_or_slow_is_told_apart(mlflow: SmallMLflow) -> None:
    with reserved_port() as port, pytest.raises(MLflowUnreachable, match="Connection refused"):
        ask(MLflowServer(f"http://127.0.0.1:{port}", {}))
    mlflow.delay = 0.5
    with pytest.raises(MLflowUnreachable, match=r"no answer within 0\.1 s"):
        ask(MLflowServer(mlflow.uri, {}, timeout=0.1))


def test_a_connection_that_the_server_has_closed_meanwhile_is_opened_again(mlflow: SmallMLflow) -> None:
    server = MLflowServer(mlflow.uri, {})
    server.post("experiments/create", {"name": "a"})
    assert server._connection is not None
    server._connection.sock.shutdown(2)  # as a server that closes what is idle
    server.post("experiments/create", {"name": "b"})
    server.close()
    assert [each.body["name"] for each in mlflow.asked] == ["a", "b"]


def test_a_proxy_is_told_the_server_and_only_the_server_gets_what_is_for_it(
    mlflow: SmallMLflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", mlflow.uri.replace("http://", "http://user:pass@"))
    monkeypatch.setenv("no_proxy", "inside.example")
    ask(MLflowServer("http://mlflow.example:5000", TOKEN))
    (asked,) = mlflow.asked
    assert asked.path == "http://mlflow.example:5000/api/2.0/mlflow/experiments/create"
    assert asked.headers["Host"] == "mlflow.example:5000"
    assert asked.headers["Proxy-Authorization"] == f"Basic {base64.b64encode(b'user:pass').decode()}"


def test_credentials_of_an_address_go_into_the_environment_alone() -> None:
    environ: dict[str, str] = {}
    assert with_credentials_in(environ, "https://me:p%40ss@host:1/x") == "https://host:1/x"
    assert environ == {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "p@ss"}
    assert public_address("https://me:p@host/x?token=a#b") == "https://host/x"


@pytest.mark.parametrize(
    ("uri", "is_here"),
    [
        ("http://127.0.0.1:5000", True),
        ("http://[::1]:5000", True),
        ("http://localhost:5000", True),
        ("http://10.0.0.1:5000", False),
        ("https://mlflow.example", False),
    ],
)
def test_an_address_of_this_machine_is_none_for_pods(uri: str, is_here: bool) -> None:
    assert is_loopback(uri) == is_here
