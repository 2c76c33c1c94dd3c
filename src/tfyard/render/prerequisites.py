"""What must exist beside the job: Namespace, Secrets, volumes and claims, TensorBoard."""

import base64
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from tfyard.model import Job, Manifest

from .manifests import Piece
from .naming import name_for
from .options import SecretFile, Setting

_MAX_NAME = 253
"""Of a claim, and of most things that are not a label."""


def before(job: Job, setting: Setting) -> tuple[Job, list[Piece]]:
    """What the pods ask for by name, in the order in which a cluster wants it; and the job that asks."""
    pieces = [namespace(job.namespace)] if setting.namespace else []
    pieces += secrets(setting.secrets, job.namespace)
    if setting.nfs_claims:
        job, made = _claims_for_nfs(job)
        pieces += made
    pieces += [Piece(claim, "A volume with a `size`: the claim is created.") for claim in job.objects]
    return job, pieces


def namespace(name: str) -> Piece:
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return Piece(manifest, "Asked for with --create-namespace.")


def secrets(files: Sequence[SecretFile], where: str) -> list[Piece]:
    entries: dict[str, dict[str, str]] = {}
    for file in files:
        entries.setdefault(file.secret, {})[file.key] = base64.b64encode(file.data).decode()
    return [
        Piece(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": where},
                "type": "Opaque",
                "data": data,
            },
            "Asked for with --secret; the values are base64, which hides nothing: keep this file private.",
        )
        for name, data in entries.items()
    ]


def tensorboard(job: Job) -> list[Piece]:
    """The same objects that the operator creates."""
    if job.tensorboard is None:
        return []
    from tfyard.planner import Site, children  # most jobs have none, and importing it takes time

    made = children.tensorboard(job, Site())
    return [Piece(manifest, f"`tensorboard: {job.tensorboard.log_dir}`.") for manifest in made]


def _claims_for_nfs(job: Job) -> tuple[Job, list[Piece]]:
    """Every NFS directory as a PersistentVolume and a claim; pods then name the claim."""
    known: dict[str, Manifest] = {claim["metadata"]["name"]: claim for claim in job.objects}
    pieces: dict[str, list[Piece]] = {}

    def claimed(volume: Manifest) -> Manifest:
        if "nfs" not in volume:
            return volume
        name = name_for(volume["nfs"], f"{job.name}-{volume['name']}", known, _MAX_NAME)
        known[name] = volume["nfs"]
        pieces[name] = nfs_claim(name, job.namespace, volume["nfs"])
        read_only = {"readOnly": True} if volume["nfs"].get("readOnly") else {}
        return {"name": volume["name"], "persistentVolumeClaim": {"claimName": name, **read_only}}

    job = _with_volumes(job, claimed)
    return job, [piece for made in pieces.values() for piece in made]


def _with_volumes(job: Job, change: Callable[[Manifest], Manifest]) -> Job:
    def changed(template: Manifest) -> Manifest:
        spec = template["spec"]
        if not spec.get("volumes"):
            return template
        return {**template, "spec": {**spec, "volumes": [change(volume) for volume in spec["volumes"]]}}

    board = job.tensorboard
    if board is not None:
        board = replace(board, volumes=tuple(change(volume) for volume in board.volumes))
    roles = tuple(replace(role, template=changed(role.template)) for role in job.roles)
    return replace(job, roles=roles, tensorboard=board)


def nfs_claim(name: str, where: str, nfs: Manifest, size: str = "1Gi") -> list[Piece]:
    """NFS knows no sizes: the number only has to be the same on both sides."""
    volume_name = f"{where}-{name}"
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume_name},
        "spec": {
            "capacity": {"storage": size},
            **common,
            "persistentVolumeReclaimPolicy": "Retain",
            "nfs": nfs,
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": where},
        "spec": {**common, "volumeName": volume_name, "resources": {"requests": {"storage": size}}},
    }
    why = f"The NFS directory {nfs['server']}:{nfs['path']}"
    return [
        Piece(volume, f"{why}. Its data stays when the claim goes (Retain)."),
        Piece(claim, f"{why}, as pods ask for it. An empty storage class: no other volume may be bound."),
    ]
