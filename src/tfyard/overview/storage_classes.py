"""Which volumes a storage class makes: for many nodes at once, or for one. A class does not say so; its
provisioner tells."""

from collections.abc import Sequence

from tfyard.model.names import PROVISIONER
from tfyard.overview.objects import StorageClass

MANY, ONE = "ReadWriteMany", "ReadWriteOnce"
_SHARED = ("nfs", "efs.csi", "filestore", "file.csi", "azure-file", "cephfs", "lustre", "fsx", "juicefs", "weka",
           "beegfs", "glusterfs", "quobyte", "seaweedfs", "longhorn", "smb", PROVISIONER)  # fmt: skip
_SINGLE = ("ebs", "gce-pd", "pd.csi", "disk.csi", "azure-disk", "cinder", "rbd", "local-path", "topolvm", "lvm",
           "vsphere-volume", "no-provisioner")  # fmt: skip


def is_shared(found: StorageClass) -> bool | None:
    """Whether several nodes can mount its volumes at once; None: unknown."""
    if any(part in found.provisioner for part in _SHARED):
        return True
    return False if any(part in found.provisioner for part in _SINGLE) else None


def choose(classes: Sequence[StorageClass]) -> tuple[str, str]:
    """The class and the access mode of a claim that several tasks write to. The class is empty if the default one
    is meant."""
    in_order = sorted(classes, key=lambda each: (not each.is_default, each.name))
    shared = next((each for each in in_order if is_shared(each)), None)
    if shared is None:
        return "", ONE
    return "" if shared.is_default else shared.name, MANY
