"""Objects that a job needs in addition to itself: Namespace, Secrets, volumes and claims, TensorBoard."""

import base64
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.model import Job, Manifest, Problem
from tfyard.planner import Site
from tfyard.planner.tensorboard import objects

from . import code, podspec, tf1
from .objects import RenderedObject
from .options import RenderOptions, SecretFile

_MAX_NAME = 253
"""Longest name of a claim, and of most objects whose names are not DNS labels."""
_EVERYWHERE = {"default", "kube-system", "kube-public", "kube-node-lease"}
"""Namespaces that every cluster has."""


class Assumed(Struct, frozen=True):
    """Objects that rendered ones refer to but that are not rendered: the cluster must have them."""

    namespaces: list[str]
    claims: list[str]


def assumed(objects: Sequence[Manifest]) -> Assumed:
    created = {(manifest.get("kind"), _metadata(manifest).get("name")) for manifest in objects}
    namespaces = [_metadata(manifest).get("namespace") for manifest in objects]
    claims = [claim for manifest in objects for claim in _claims(manifest)]
    return Assumed(
        [
            n
            for n in dict.fromkeys(namespaces)
            if n and n not in _EVERYWHERE and ("Namespace", n) not in created
        ],
        [n for n in dict.fromkeys(claims) if ("PersistentVolumeClaim", n) not in created],
    )


def _metadata(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _claims(part: object) -> Iterator[str]:
    """Claims of volumes, at any depth, because kinds have their pod template in different places."""
    if isinstance(part, list):
        for below in part:
            yield from _claims(below)
    elif isinstance(part, dict):
        claim = part.get("persistentVolumeClaim")
        if isinstance(claim, dict) and isinstance(claim.get("claimName"), str):
            yield claim["claimName"]
        for below in part.values():
            yield from _claims(below)


def without_empty_roles(job: Job) -> Job:
    job = replace(job, roles=tuple(role for role in job.roles if role.replicas))
    if not job.roles:
        raise Invalid([Problem((), "the job has no task: there is nothing to render", "give a role a count")])
    return job


def complete(job: Job, options: RenderOptions) -> tuple[Job, list[RenderedObject]]:
    """The job with its code, and with the objects that must exist before it."""
    job, code_objects = code.add(job, options)
    job, tf1_objects = tf1.add(job)
    job, before = _create(job, options)
    return job, [*before, *code_objects, *tf1_objects]


def _create(job: Job, options: RenderOptions) -> tuple[Job, list[RenderedObject]]:
    """The job, and the objects to which its pods refer by name, in the order in which to create them."""
    objects = [namespace(job.namespace)] if options.create_namespace else []
    objects += secrets(options.secrets, job.namespace)
    if options.nfs_claims:
        job, claims = _claims_for_nfs(job)
        objects += claims
    objects += [RenderedObject(claim, "The claim of a volume with a `size`.") for claim in job.objects]
    return job, objects


def namespace(name: str) -> RenderedObject:
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return RenderedObject(manifest, "Requested with --create-namespace.")


def secrets(files: Sequence[SecretFile], namespace: str) -> list[RenderedObject]:
    entries: dict[str, dict[str, str]] = {}
    for file in files:
        entries.setdefault(file.secret, {})[file.key] = base64.b64encode(file.data).decode()
    return [
        RenderedObject(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": namespace},
                "type": "Opaque",
                "data": data,
            },
            "Requested with --secret. The values are encoded (base64), not encrypted: keep this file private.",
        )
        for name, data in entries.items()
    ]


def tensorboard(job: Job) -> list[RenderedObject]:
    """The objects that the operator would create for TensorBoard."""
    if job.tensorboard is None:
        return []
    created = objects(job, Site())
    comment = f"From `tensorboard: {job.tensorboard.log_dir}`."
    return [RenderedObject(manifest, comment) for manifest in created]


def _claims_for_nfs(job: Job) -> tuple[Job, list[RenderedObject]]:
    """A PersistentVolume and a claim for every NFS directory, and the job whose pods refer to the claims."""
    taken: dict[str, Manifest] = {claim["metadata"]["name"]: claim for claim in job.objects}
    objects: dict[str, list[RenderedObject]] = {}

    def claimed(volume: Manifest) -> Manifest:
        if "nfs" not in volume:
            return volume
        name = podspec.free_name(f"{job.name}-{volume['name']}", volume["nfs"], taken, _MAX_NAME)
        taken[name] = volume["nfs"]
        objects[name] = nfs_claim(name, job.namespace, volume["nfs"])
        read_only = {"readOnly": True} if volume["nfs"].get("readOnly") else {}
        return {"name": volume["name"], "persistentVolumeClaim": {"claimName": name, **read_only}}

    job = _with_volumes(job, claimed)
    return job, [rendered for pair in objects.values() for rendered in pair]


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


def nfs_claim(name: str, namespace: str, nfs: Manifest, size: str = "1Gi") -> list[RenderedObject]:
    """A volume and its claim. NFS has no sizes: the number only has to be the same in both."""
    volume_name = f"{namespace}-{name}"
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
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**common, "volumeName": volume_name, "resources": {"requests": {"storage": size}}},
    }
    directory = f"the NFS directory {nfs['server']}:{nfs['path']}"
    empty = "Because storageClassName is empty, no other volume is bound."
    return [
        RenderedObject(
            volume, f"The volume for {directory}. Its data stays when the claim is deleted (Retain)."
        ),
        RenderedObject(claim, f"The claim by which pods mount {directory}. {empty}"),
    ]
