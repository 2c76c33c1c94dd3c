"""What the caller chooses in addition to the job."""

from msgspec import Struct

from tfyard.model import ServiceMode


class CodeFile(Struct, frozen=True):
    path: str
    """Relative to the code's folder, with `/` between the parts."""
    data: bytes
    executable: bool = False


class SecretFile(Struct, frozen=True):
    """One key of a Secret, and its content."""

    secret: str
    key: str
    data: bytes


class RenderOptions(Struct, frozen=True, kw_only=True):
    create_namespace: bool = False
    nfs_claims: bool = False
    """Mount NFS through a PersistentVolume and a claim, instead of naming the server in each pod."""
    secrets: tuple[SecretFile, ...] = ()
    services: ServiceMode | None = None
    domain: str = ""
    """The cluster domain that addresses end with; empty: `….svc`, which every cluster resolves."""
    code_files: tuple[CodeFile, ...] = ()
    """The files of the code folder, for a job whose code is one."""
    git_image: str = "alpine/git:2.47.2"
