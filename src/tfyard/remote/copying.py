"""Copies between this machine and a job: whole trees, with a checksum of every file, and only what differs.

A connection that breaks is made again, a bounded number of times; what is there already is not sent again.
"""

import asyncio
import posixpath
from pathlib import Path

from tfyard.file_trees import Copied, CopyError, Progress, Silent
from tfyard.kube import Client, NotFound, Transient
from tfyard.kube.exec import ExecFailed
from tfyard.model.backoff import Backoff
from tfyard.overview import mounts

from .container_files import Failed
from .copy_state import CopyState
from .fetching import Fetching
from .job_paths import DEFAULT_OPTIONS, JobPath, Options, job_of, opened
from .jobs import Found
from .sending import Sending
from .tar_stream import Broken

ATTEMPTS = 5
"""In a row, without a file more."""
BACKOFF = Backoff(first=0.5, longest=10.0)
RETRIED = (Transient, NotFound, ExecFailed, Failed, Broken)
SILENT = Silent()

__all__ = ["Copied", "CopyError", "Options", "Progress", "Silent", "fetch", "send"]


async def fetch(
    client: Client,
    found: Found,
    path: str,
    to: Path,
    progress: Progress = SILENT,
    options: Options = DEFAULT_OPTIONS,
) -> Copied:
    """A folder of the job becomes the folder `to`; a file becomes the file `to`, or one in the folder `to`."""
    path = mounts.normal(path, job_of(found))
    to = to / posixpath.basename(path) if options.into else to
    place = JobPath(found=found, path=path, options=options)
    return await _persistently(client, place, Fetching(path, to, progress))


async def send(
    client: Client,
    found: Found,
    source: Path,
    path: str,
    progress: Progress = SILENT,
    options: Options = DEFAULT_OPTIONS,
) -> Copied:
    """The other way, by the same rules."""
    path = mounts.normal(path, job_of(found))
    path = posixpath.join(path, source.resolve().name) if options.into else path
    place = JobPath(found=found, path=path, options=options, writes=True)
    return await _persistently(client, place, Sending(source, path, progress))


async def _persistently(client: Client, place: JobPath, copy: CopyState) -> Copied:
    """Again after a connection broke, or a pod went."""
    backoff, before = BACKOFF, 0
    while True:
        try:
            async with opened(client, place, copy.progress.say) as files:
                return await copy.run(files)
        except RETRIED as problem:
            backoff = (BACKOFF if len(copy.done) > before else backoff).next()
            before = len(copy.done)
            if backoff.failures >= ATTEMPTS:
                text = f"{problem} ({ATTEMPTS} attempts); the same command goes on (files so far: {before})"
                raise CopyError(text) from problem
            copy.progress.say(f"{problem}; trying again (files so far: {before})")
            await asyncio.sleep(backoff.delay())
