"""What the caller chooses beside the job itself."""

from msgspec import Struct

from tfyard.model import ServiceMode


class CodeFile(Struct, frozen=True):
    path: str
    """Seen from the code's folder, with `/` between the parts."""
    data: bytes
    executable: bool = False


class SecretFile(Struct, frozen=True):
    """One entry of a Secret, and its content."""

    secret: str
    key: str
    data: bytes


class Setting(Struct, frozen=True, kw_only=True):
    namespace: bool = False
    """Write the Namespace, too."""
    nfs_claims: bool = False
    """Reach NFS by a PersistentVolume and a claim, instead of naming the server in each pod."""
    secrets: tuple[SecretFile, ...] = ()
    services: ServiceMode | None = None
    domain: str = ""
    """The cluster domain that addresses end with; empty: `….svc`, which every cluster resolves."""
    code: tuple[CodeFile, ...] = ()
    """The files of a code folder, for a job whose code is one."""
    git_image: str = "alpine/git:2.47.2"
