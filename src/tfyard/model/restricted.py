"""Security contexts of the pods that tfyard makes for itself, as Pod Security `restricted` demands them."""

from typing import Final

from .job import Manifest

USER: Final = 65532
"""uid and gid, as in distroless images: not root, and no user of a node."""
POD: Final[Manifest] = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER: Final[Manifest] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
