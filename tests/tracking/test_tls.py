"""MLflow behind TLS: who it is is proved before it gets credentials, by the variables of MLflow's own client."""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.tracking.server import SmallMLflow, serving
from tests.tracking.test_client import ask
from tfyard.controlplane.certificates import CertificateAuthority
from tfyard.tracking.client import MLflowRefused, MLflowServer

CA, INSECURE = "MLFLOW_TRACKING_SERVER_CERT_PATH", "MLFLOW_TRACKING_INSECURE_TLS"
LOGIN = {"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "hunter2"}
TOKEN = {"MLFLOW_TRACKING_TOKEN": "t0ken"}


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    made = CertificateAuthority()
    (tmp_path / "ca.pem").write_bytes(made.pem)
    return made


def pem(folder: Path, authority: CertificateAuthority, name: str) -> Path:
    pair = authority.server("mlflow", [name])
    path = folder / f"{name}.pem"
    path.write_bytes(pair.certificate + pair.key)
    return path


@pytest.fixture
def secure(tmp_path: Path, authority: CertificateAuthority) -> Iterator[SmallMLflow]:
    with serving(pem=pem(tmp_path, authority, "127.0.0.1")) as small:
        yield small


@pytest.mark.parametrize(
    ("login", "header"),
    [(LOGIN, f"Basic {base64.b64encode(b'me:hunter2').decode()}"), (TOKEN, "Bearer t0ken"), ({}, None)],
)
def test_a_server_with_a_certificate_of_the_users_authority_gets_the_credentials(
    login: Mapping[str, str], header: str | None, secure: SmallMLflow, tmp_path: Path
) -> None:
    ask(MLflowServer(secure.uri, {**login, CA: str(tmp_path / "ca.pem")}))
    assert secure.asked[0].headers.get("Authorization") == header


def test_a_server_that_nobody_vouches_for_gets_nothing_and_the_fix_is_said(secure: SmallMLflow) -> None:
    with pytest.raises(MLflowRefused, match=rf"certificate is not trusted \(.+\); {CA}=FILE names"):
        ask(MLflowServer(secure.uri, TOKEN))
    assert secure.asked == []


def test_a_certificate_of_another_host_is_not_enough(tmp_path: Path, authority: CertificateAuthority) -> None:
    other = pem(tmp_path, authority, "mlflow.example")
    with serving(pem=other) as small:
        with pytest.raises(MLflowRefused, match=r"not trusted \(.*not valid for '127\.0\.0\.1'"):
            ask(MLflowServer(small.uri, {**TOKEN, CA: str(tmp_path / "ca.pem")}))
        assert small.asked == []


@pytest.mark.parametrize("word", ["true", "1", "TRUE"])
def test_checks_are_left_out_only_where_the_user_says_so(word: str, secure: SmallMLflow) -> None:
    ask(MLflowServer(secure.uri, {**LOGIN, INSECURE: word}))
    assert len(secure.asked) == 1
    with pytest.raises(MLflowRefused, match="not trusted"):
        ask(MLflowServer(secure.uri, {**LOGIN, INSECURE: "false"}))
    assert len(secure.asked) == 1


def test_a_file_of_authorities_that_is_missing_or_none_is_named(secure: SmallMLflow, tmp_path: Path) -> None:
    missing, text = tmp_path / "absent.pem", tmp_path / "text.pem"
    text.write_text("no certificate\n")
    with pytest.raises(MLflowRefused, match=f"{CA}={missing}: No such file or directory"):
        ask(MLflowServer(secure.uri, {CA: str(missing)}))
    with pytest.raises(MLflowRefused, match=f"{CA}={text}: it has no certificates"):
        ask(MLflowServer(secure.uri, {CA: str(text)}))
    assert secure.asked == []


def test_a_redirect_to_a_server_without_tls_gets_no_token(
    secure: SmallMLflow, other: SmallMLflow, tmp_path: Path
) -> None:
    secure.status, secure.location = 307, f"{other.uri}/api/2.0/mlflow/experiments/create"
    with pytest.raises(MLflowRefused, match="which is not followed"):
        ask(MLflowServer(secure.uri, {**TOKEN, CA: str(tmp_path / "ca.pem")}))
    assert (len(secure.asked), other.asked) == (1, [])
