"""Copies all outputs of a job: what its tasks have written to claims."""

import posixpath
from pathlib import Path

from tfyard.kube import Client
from tfyard.overview.job_view import kept_paths

from . import copying
from .copying import Copied, Options, Progress
from .job_paths import job_of
from .jobs import Found


async def fetch(client: Client, found: Found, to: Path, progress: Progress, options: Options) -> list[Copied]:
    """The one path that its tasks write to becomes the folder `to`; several become folders in it."""
    job = job_of(found)
    kept = kept_paths(job)
    paths = list(dict.fromkeys(posixpath.normpath(each.path) for each in kept if each.is_claim))
    for text in dict.fromkeys(f"{each.path} ({each.source})" for each in kept if not each.is_claim):
        progress.say(f"{text} is not copied: it is on no claim")
    if not paths:
        progress.say(f"{found.name} writes to no claim, so there is nothing to copy")
    _make(to)
    return [
        await copying.fetch(
            client, found, path, to / _folder(path) if len(paths) > 1 else to, progress, options
        )
        for path in paths
    ]


def _make(folder: Path) -> None:
    """A new folder is left out by git, and of the code of the next job, which is what git would add."""
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("# Outputs of a job, brought here by tfyard.\n*\n")


def _folder(path: str) -> str:
    return path.strip("/").replace("/", "-") or "root"
