"""`--as tfjob`: the TFJob v1 object and what it needs, for a cluster with an operator."""

from msgspec.structs import replace

from tfyard import formats
from tfyard.model import Job, Manifest

from . import code, prerequisites
from .comments import Path
from .manifests import Piece
from .options import Setting


def tfjob(job: Job, setting: Setting) -> list[Piece]:
    shipped = code.ship(job, setting)
    job, before = prerequisites.before(shipped[0], setting)
    pieces = [*before, *shipped[1], _job(job), *prerequisites.tensorboard(job)]
    return [_without_default_namespace(piece) for piece in pieces]


def shortfalls(job: Job) -> list[str]:
    """What the job asks for and a TFJob cannot say. What we write beside it is not missing."""
    return formats.dump(replace(job, tensorboard=None, code=None, objects=()), "v1").lost


def hosts(job: Job, setting: Setting) -> dict[str, list[str]]:
    """Everybody's address as the operator gives it, for those who drive the cluster from outside of it."""
    from tfyard.planner.job_setup import Setup, addresses

    mode = setting.services or job.services
    setup = Setup(services="per-replica" if mode == "per-replica" else "shared", domain=setting.domain)
    return {role.name: addresses(job, role, setup) for role in job.roles if role.replicas}


def _job(job: Job) -> Piece:
    manifest = formats.dump(job, "v1").document
    notes: dict[Path, str] = {("spec", "runPolicy"): "From clean, deadline, retries and keepFor."}
    for role in job.roles:
        path: Path = ("spec", "tfReplicaSpecs", role.name)
        notes[path] = f"The role `{role.name.lower()}`: {role.replicas} task{'s'[: role.replicas != 1]}."
        notes[(*path, "template", "spec", "initContainers")] = "Brings the code before the training begins."
    return Piece(manifest, "The job itself; an operator makes pods of it.", notes)


def _without_default_namespace(piece: Piece) -> Piece:
    """Nothing here spells out an address, so the namespace can be left to `kubectl --namespace`."""
    metadata: Manifest = piece.manifest["metadata"]
    if metadata.get("namespace") != "default":
        return piece
    kept = {key: value for key, value in metadata.items() if key != "namespace"}
    return Piece({**piece.manifest, "metadata": kept}, piece.why, piece.notes)
