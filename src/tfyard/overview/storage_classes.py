"""Whether the volumes of a storage class are for many nodes at once or for one, by its provisioner: a class has no
field for it."""

from collections.abc import Sequence

from tfyard.model.names import PROVISIONER
from tfyard.views.objects import StorageClass

MANY, ONE = "ReadWriteMany", "ReadWriteOnce"
_SHARED = ("nfs", "efs.csi", "filestore", "file.csi", "azure-file", "cephfs", "lustre", "fsx", "juicefs", "weka",
           "beegfs", "glusterfs", "quobyte", "seaweedfs", "longhorn", "smb", PROVISIONER)  # fmt: skip
_SINGLE = ("ebs", "gce-pd", "pd.csi", "disk.csi", "azure-disk", "cinder", "rbd", "local-path", "topolvm", "lvm",
           "vsphere-volume", "no-provisioner")  # fmt: skip


def is_shared(storage_class: StorageClass) -> bool | None:
    """Whether several nodes can mount volumes of the class at once; None: unknown."""
    if any(part in storage_class.provisioner for part in _SHARED):
        return True
    return False if any(part in storage_class.provisioner for part in _SINGLE) else None


def choose(classes: Sequence[StorageClass]) -> tuple[str, str]:
    """Class and access mode for a claim that several tasks write to. An empty class is the default one."""
    in_order = sorted(classes, key=lambda each: (not each.is_default, each.name))
    shared = next((each for each in in_order if is_shared(each)), None)
    if shared is None:
        return "", ONE
    return "" if shared.is_default else shared.name, MANY
