"""Addresses of MLflow servers: their credentials, which only the environment keeps, and their hosts."""

from collections.abc import MutableMapping
from urllib.parse import unquote, urlsplit, urlunsplit

USER, PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"


def with_credentials_in(environ: MutableMapping[str, str], uri: str) -> str:
    """The address without its credentials, which go into the environment, where MLflow's own client looks, too."""
    parts = urlsplit(uri)
    if parts.username is not None and parts.scheme in ("http", "https"):
        environ[USER], environ[PASSWORD] = unquote(parts.username), unquote(parts.password or "")
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return uri


def public_address(uri: str) -> str:
    """Scheme, host and path of an address: what follows may be a secret, too."""
    parts = urlsplit(uri)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def is_loopback(uri: str) -> bool:
    """Whether the server is on this machine, where pods of a cluster do not find it."""
    host = urlsplit(uri).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")
