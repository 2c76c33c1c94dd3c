"""Copies from and to the volumes of a run on this machine, by the rules of copies from a cluster."""

import posixpath
from pathlib import Path

from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Usage
from tfyard.file_trees import Copied, Landing, Progress, digest, some, walk
from tfyard.local.views import job_of
from tfyard.model import Job
from tfyard.node.containers import Objects
from tfyard.node.volumes import LASTING, Volumes, inside
from tfyard.overview import mounts
from tfyard.overview.mounts import Mounted
from tfyard.overview.record import RunRecord

CHUNK = 1 << 20


def locate(run: RunDirectory, record: RunRecord, path: str, task: str = "") -> Path:
    """Where a path of its tasks is on this machine."""
    job = job_of(run)
    if job is None or not job.roles:
        raise Usage(f"{run.name}: its job cannot be read")
    path = mounts.normal(path, job)
    found = mounts.nearest(mounts.role_of(job, task, path).template, path)
    if found is None or not _is_kept(found, record):
        raise Usage(f"{path} is not on a volume that is kept{_instead(run, job)}")
    given = {name: Path(directory) for name, directory in record.mounts.items()}
    directory = Volumes(run.path.resolve().parents[1] / "volumes", given, Objects()).directory(
        found.volume, run.path
    )
    return inside(directory, posixpath.join(found.sub_path, posixpath.relpath(path, found.at)))


def copy(source: Path, to: Path, progress: Progress, *, into: bool = False) -> Copied:
    tree = walk(source)
    to = to / source.name if into or (tree.is_file and to.is_dir()) else to
    landing = Landing(to, tree)
    landing.prepare()
    progress.begin(len(tree.files), tree.size)
    sent = [
        name
        for name in tree.files
        if _copy(source if tree.is_file else source / name, landing, name, progress)
    ]
    links = landing.link()
    left = {"these links lead elsewhere": links, "these are neither files nor folders": tree.others}
    return Copied(
        to=str(to),
        files=len(sent),
        size=sum(tree.files[name] for name in sent),
        same=len(tree.files) - len(sent),
        notes=tuple(f"left out, because {why}: {some(names)}" for why, names in left.items() if names),
    )


def _copy(source: Path, landing: Landing, name: str, progress: Progress) -> bool:
    """Whether it was missing or different."""
    wanted, found = digest(source), source.stat()
    if landing.has(name, wanted):
        progress.advance(found.st_size)
        return False
    with landing.part(name) as part, source.open("rb") as file:
        while data := file.read(CHUNK):
            part.write(data)
            progress.advance(len(data))
        if not part.finish(wanted, found.st_mode, found.st_mtime):
            raise Usage(f"{source} changes while it is copied")
    return True


def _is_kept(found: Mounted, record: RunRecord) -> bool:
    volume = found.volume
    is_given = volume.get("name") in record.mounts
    return is_given or any(volume.get(kind) for kind in (*LASTING, "hostPath"))


def _instead(run: RunDirectory, job: Job) -> str:
    work = f"; what its tasks wrote beside volumes is in {run.work}" if run.work.exists() else ""
    return f"{mounts.kept(job)}{work}"
