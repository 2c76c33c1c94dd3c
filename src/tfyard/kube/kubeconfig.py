"""The choice of cluster and user, by kubectl's own rules.

`--kubeconfig` wins over `KUBECONFIG` (a list of files; the first with a value wins, missing files are skipped),
which wins over `~/.kube/config`; without any of them, this process's Pod. Paths in a file are relative to it.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from tfyard.kube.errors import BadKubeconfig

T = TypeVar("T")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A command that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[dict[str, str]] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")

    @property
    def is_renewable(self) -> bool:
        """Whether reading the file or running the plugin again may give new credentials."""
        return bool(self.exec or self.token_file)


class Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class Access(msgspec.Struct, frozen=True):
    """One cluster, one user, one default namespace: all that the transport needs."""

    cluster: ClusterEntry
    user: User = User()
    namespace: str = "default"


class Config(msgspec.Struct, frozen=True):
    """A kubeconfig with its lists as maps, so that merging is a union of maps."""

    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, User] = {}
    contexts: dict[str, Context] = {}
    current: str = ""


def parse(text: str, folder: Path) -> Config:
    """Pure: `folder` is the directory of the file, for the relative paths in it."""
    try:
        doc = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}
        return Config(
            _named(doc, "clusters", "cluster", ClusterEntry, folder),
            _named(doc, "users", "user", User, folder),
            _named(doc, "contexts", "context", Context, folder),
            doc.get("current-context") or "",
        )
    except (yaml.YAMLError, msgspec.ValidationError, KeyError, AttributeError, TypeError) as problem:
        raise BadKubeconfig(f"not a kubeconfig: {problem}") from problem


def merge(configs: Iterable[Config]) -> Config:
    """The union of the configs; the first that has a name wins."""
    merged = Config()
    for config in configs:
        merged = Config(
            {**config.clusters, **merged.clusters},
            {**config.users, **merged.users},
            {**config.contexts, **merged.contexts},
            merged.current or config.current,
        )
    return merged


def is_present(env: Mapping[str, str]) -> bool:
    """Whether a cluster is configured at all."""
    if env.get("KUBECONFIG") or env.get("KUBERNETES_SERVICE_HOST"):
        return True
    return (Path(env.get("HOME") or Path.home()) / ".kube" / "config").exists()


def choose(config: Config, context: str = "") -> Access:
    name = context or config.current
    if not name:
        raise BadKubeconfig("no current-context is set: `kubectl config use-context NAME` sets one")
    if name not in config.contexts:
        raise BadKubeconfig(f"no context {name!r}; there are: {', '.join(sorted(config.contexts)) or 'none'}")
    chosen = config.contexts[name]
    cluster = config.clusters.get(chosen.cluster)
    if cluster is None or not cluster.server:
        raise BadKubeconfig(f"context {name!r} names cluster {chosen.cluster!r}, which has no server")
    if chosen.user and chosen.user not in config.users:
        raise BadKubeconfig(f"context {name!r} names user {chosen.user!r}, which does not exist")
    return Access(cluster, config.users.get(chosen.user, User()), chosen.namespace or "default")


def dump(access: Access, name: str = "tfyard") -> str:
    """The inverse of `parse` and `choose`: a kubeconfig with this access as its only context."""
    doc = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": _filled(access.cluster)}],
        "users": [{"name": name, "user": _filled(access.user)}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": access.namespace}}
        ],
        "current-context": name,
    }
    return yaml.safe_dump(doc, sort_keys=False)


def load(environ: Mapping[str, str], path: str = "", context: str = "") -> Access:
    """The access that kubectl would use. The environment is an argument, so that tests need not change ours."""
    files = _files(environ, path)
    config = _merged(files)
    if not config.contexts and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environ)
    if not config.contexts:
        raise BadKubeconfig(
            f"no kubeconfig in {', '.join(map(str, files))}, and this process does not run in a Pod;"
            " --kubeconfig names another file, and `tfyard dev up` starts a cluster on this machine"
        )
    return choose(config, context)


def load_cluster(environ: Mapping[str, str], path: str = "", context: str = "") -> ClusterEntry:
    """The cluster that kubectl would use, for callers that bring the credentials of others: in a Pod, its address
    and its CA, without the token of the ServiceAccount."""
    if not _merged(_files(environ, path)).contexts and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return _of_pod(environ, SERVICE_ACCOUNT)
    return load(environ, path, context).cluster


def contexts(environ: Mapping[str, str], path: str = "") -> list[str]:
    """The names of all contexts."""
    return sorted(_merged(_files(environ, path)).contexts)


def _files(environ: Mapping[str, str], path: str) -> list[Path]:
    if path and not Path(path).is_file():
        raise BadKubeconfig(f"{path}: no such file")
    home = Path(environ.get("HOME") or Path.home())
    named = [path] if path else [part for part in environ.get("KUBECONFIG", "").split(":") if part]
    return [Path(part) for part in named] or [home / ".kube" / "config"]


def _merged(files: list[Path]) -> Config:
    return merge(_read(file) for file in files if file.is_file())


def _read(file: Path) -> Config:
    try:
        return parse(file.read_text(), file.parent)
    except (OSError, UnicodeDecodeError, BadKubeconfig) as problem:
        raise BadKubeconfig(f"{file}: {getattr(problem, 'strerror', problem)}") from None


def in_cluster(environ: Mapping[str, str], folder: Path = SERVICE_ACCOUNT) -> Access:
    """Access as the Pod's ServiceAccount. The token stays a file: the kubelet replaces it before it expires."""
    if not (folder / "token").is_file():
        raise BadKubeconfig(f"{folder}/token not found: does the Pod mount its ServiceAccount's token?")
    user = User(token_file=str(folder / "token"))
    return Access(_of_pod(environ, folder), user, (folder / "namespace").read_text().strip())


def _of_pod(environ: Mapping[str, str], folder: Path) -> ClusterEntry:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ClusterEntry(server=server, certificate_authority=str(folder / "ca.crt"))


def material(data: str, file: str) -> bytes:
    """PEM bytes from inline base64, which wins, or from a file; empty if neither is given."""
    try:
        return base64.b64decode(data, validate=True) if data else Path(file).read_bytes() if file else b""
    except (OSError, binascii.Error) as problem:
        raise BadKubeconfig(f"certificate or key cannot be read: {problem}") from problem


PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def _named(doc: dict[str, Any], plural: str, singular: str, into: type[T], folder: Path) -> dict[str, T]:
    entries = {entry["name"]: entry.get(singular) or {} for entry in doc.get(plural) or []}
    return {name: msgspec.convert(_absolute(entry, folder), into) for name, entry in entries.items()}


def _absolute(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    present = {key: value for key, value in entry.items() if value is not None}
    changed: dict[str, Any] = {key: str(folder / present[key]) for key in PATHS if present.get(key)}
    plugin = present.get("exec")
    if plugin and "/" in plugin["command"]:
        changed["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**present, **changed}


def _filled(part: msgspec.Struct) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(part).items() if value}
