"""Options of rendering, in addition to the job."""

from msgspec import Struct

from tfyard.model import ServiceMode


class CodeFile(Struct, frozen=True):
    path: str
    """Path relative to the code's folder, with `/` between the parts."""
    data: bytes
    executable: bool = False


class SecretFile(Struct, frozen=True):
    """A key of a Secret with its content."""

    secret: str
    key: str
    data: bytes


class RenderOptions(Struct, frozen=True, kw_only=True):
    create_namespace: bool = False
    nfs_claims: bool = False
    """NFS is mounted through a PersistentVolume and a claim, so that pods do not name the server."""
    secrets: tuple[SecretFile, ...] = ()
    services: ServiceMode | None = None
    domain: str = ""
    """Cluster domain at the end of addresses; empty: they end with `.svc`, which every cluster resolves."""
    code_files: tuple[CodeFile, ...] = ()
    """Files of the code, if the job's code is a folder."""
    git_image: str = "alpine/git:2.47.2"
