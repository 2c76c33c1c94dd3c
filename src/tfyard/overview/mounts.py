"""Which volumes a path of a task is on."""

import posixpath

from msgspec import Struct

from tfyard.errors import Usage
from tfyard.model import Job, Manifest, Role, tensorflow_container
from tfyard.overview.job_view import outputs
from tfyard.overview.wording import harmless


class Mounted(Struct, frozen=True):
    """A volume where a task sees it."""

    volume: Manifest
    at: str
    sub_path: str = ""

    @property
    def claim(self) -> str:
        return str((self.volume.get("persistentVolumeClaim") or {}).get("claimName") or "")


def normal(path: str, job: Job) -> str:
    """As a task sees it."""
    if not path.startswith("/") or not path.isprintable():
        fix = f"must be a path as the tasks see it, such as /out/model{kept(job)}"
        raise Usage(f"{harmless(path) or 'an empty path'}: {fix}")
    return posixpath.normpath("/" + path.lstrip("/"))


def role_of(job: Job, task: str, path: str) -> Role:
    """The role of the task; of no task in particular, the first that has the path on a claim."""
    if task:
        known = {each.name: each.role for each in job.tasks()}
        if task not in known:
            from tfyard.formats.declarations.reading import did_you_mean

            raise Usage(f"{job.name} has no task {task!r}; {did_you_mean(task, list(known))}")
        return next(role for role in job.roles if role.name == known[task])
    return next((role for role in job.roles if _is_kept(role, path)), job.roles[0])


def nearest(template: Manifest, path: str) -> Mounted | None:
    """The volume that a path is on; None: it is in the container itself."""
    above = [mounted for mounted in _mounts(template) if is_below(path, mounted.at)]
    return max(above, key=lambda mounted: len(mounted.at), default=None)


def below(template: Manifest, path: str) -> list[Mounted]:
    """Volumes that are seen in a folder."""
    return [each for each in _mounts(template) if each.at != path and is_below(each.at, path)]


def is_below(path: str, folder: str) -> bool:
    """Or the folder itself."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def kept(job: Job) -> str:
    """For a message: where its tasks can write what stays."""
    found = list(dict.fromkeys(text.partition(": ")[2] for text in outputs(job)))
    return f"; {', '.join(found)}" if found else ""


def _is_kept(role: Role, path: str) -> bool:
    found = nearest(role.template, path)
    return bool(found and found.claim)


def _mounts(template: Manifest) -> list[Mounted]:
    """Of a folder whose name only the pod knows (subPathExpr), it is not known where it is."""
    volumes = {each.get("name"): each for each in (template.get("spec") or {}).get("volumes") or []}
    found = []
    for mount in tensorflow_container(template).get("volumeMounts") or []:
        volume = {} if mount.get("subPathExpr") else volumes.get(mount.get("name")) or {}
        at = posixpath.normpath(str(mount.get("mountPath") or "/"))
        found.append(Mounted(volume, at, str(mount.get("subPath") or "")))
    return found
