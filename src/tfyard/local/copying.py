"""Copies from and to the volumes of a run on this machine, by the rules of copies from a cluster."""

import posixpath
from pathlib import Path

from tfyard.backends.local.node import FileSources
from tfyard.backends.local.run_directory import RunDirectory
from tfyard.errors import Usage
from tfyard.file_trees import Copied, CopyProgress, Landing, digest, some, walk
from tfyard.local.views import job_of
from tfyard.model import Job
from tfyard.model.run_record import RunRecord
from tfyard.node.volumes import LASTING, inside
from tfyard.overview import mounts
from tfyard.overview.mounts import Mounted

CHUNK = 1 << 20


def locate(run: RunDirectory, record: RunRecord, path: str, task: str = "") -> Path:
    """Path on this machine of a path that the tasks of the run see."""
    job = job_of(run)
    if job is None or not job.roles:
        raise Usage(f"{run.name}: its job cannot be read")
    path = mounts.normal(path, job)
    mounted = mounts.nearest(mounts.role_of(job, task, path).template, path)
    if mounted is None or not _is_kept(mounted, record):
        here = f"; {path} is on this machine: no run is needed to copy it" if Path(path).exists() else ""
        raise Usage(f"{path} is not on a volume that is kept{here or _instead(run, job)}")
    directories = {name: Path(directory) for name, directory in record.mounts.items()}
    kept = FileSources(run.path.resolve().parents[1] / "volumes", directories).directory(mounted.volume)
    directory = kept or Path(mounted.volume["hostPath"]["path"])
    return inside(directory, posixpath.join(mounted.sub_path, posixpath.relpath(path, mounted.at)))


def copy(source: Path, to: Path, progress: CopyProgress, *, into: bool = False) -> Copied:
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


def _copy(source: Path, landing: Landing, name: str, progress: CopyProgress) -> bool:
    """Whether the file was missing or different, and was copied."""
    checksum, stat = digest(source), source.stat()
    if landing.has(name, checksum):
        progress.advance(stat.st_size)
        return False
    with landing.part(name) as part, source.open("rb") as file:
        while data := file.read(CHUNK):
            part.write(data)
            progress.advance(len(data))
        if not part.finish(checksum, stat.st_mode, stat.st_mtime):
            raise Usage(f"{source} changes while it is copied")
    return True


def _is_kept(mounted: Mounted, record: RunRecord) -> bool:
    volume = mounted.volume
    is_given = volume.get("name") in record.mounts
    return is_given or any(volume.get(kind) for kind in (*LASTING, "hostPath"))


def _instead(run: RunDirectory, job: Job) -> str:
    work = f"; what its tasks wrote beside volumes is in {run.work}" if run.work.exists() else ""
    return f"{mounts.kept(job)}{work}"
