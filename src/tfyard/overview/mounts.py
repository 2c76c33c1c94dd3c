"""Which volumes a path of a task is on."""

import posixpath

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Job, Manifest, Role, tensorflow_container
from tfyard.model.spelling import did_you_mean
from tfyard.overview.job_view import outputs
from tfyard.overview.wording import harmless


class Mounted(Struct, frozen=True):
    """A volume at its mount path in a task's container."""

    volume: Manifest
    at: str
    sub_path: str = ""

    @property
    def claim(self) -> str:
        return str((self.volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def normal(path: str, job: Job) -> str:
    """The normalized path in a task's container."""
    if not path.startswith("/") or not path.isprintable():
        fix = f"must be a path as the tasks see it, such as /out/model{kept(job)}"
        raise Usage(f"{harmless(path) or 'an empty path'}: {fix}")
    return posixpath.normpath("/" + path.lstrip("/"))


def role_of(job: Job, task: str, path: str) -> Role:
    """The role of the task; without a task, the first role that has the path on a claim."""
    if task:
        known = {known_task.name: known_task.role for known_task in job.tasks()}
        if task not in known:
            raise Usage(f"{job.name} has no task {task!r}; {did_you_mean(task, list(known))}")
        return next(role for role in job.roles if role.name == known[task])
    return next((role for role in job.roles if _is_kept(role, path)), job.roles[0])


def nearest(template: Manifest, path: str) -> Mounted | None:
    """The volume that a path is on; None if it is on the container's own disk."""
    above = [mounted for mounted in _mounts(template) if is_below(path, mounted.at)]
    return max(above, key=lambda mounted: len(mounted.at), default=None)


def below(template: Manifest, path: str) -> list[Mounted]:
    """Volumes that are mounted in a folder."""
    return [mounted for mounted in _mounts(template) if mounted.at != path and is_below(mounted.at, path)]


def is_below(path: str, folder: str) -> bool:
    """Whether a path is in the folder, or the folder itself."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def kept(job: Job) -> str:
    """The paths where tasks can write files that outlive the pod, for a message."""
    paths = list(dict.fromkeys(text.partition(": ")[2] for text in outputs(job)))
    return f"; {', '.join(paths)}" if paths else ""


def _is_kept(role: Role, path: str) -> bool:
    mounted = nearest(role.template, path)
    return bool(mounted and mounted.claim)


def _mounts(template: Manifest) -> list[Mounted]:
    """Mounts of the training container. With a subPathExpr no volume is known: only the pod knows the folder."""
    volumes = {each.get("name"): each for each in (template.get("spec") or {}).get("volumes") or []}
    mounts = []
    for mount in tensorflow_container(template).get("volumeMounts") or []:
        volume = {} if mount.get("subPathExpr") else volumes.get(mount.get("name")) or {}
        at = posixpath.normpath(str(mount.get("mountPath") or "/"))
        mounts.append(Mounted(volume, at, str(mount.get("subPath") or "")))
    return mounts
