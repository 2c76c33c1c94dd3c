"""Sends code onto a claim: as a tar archive to a helper pod that mounts it.

The archive begins with the checksums of its files. The pod compares them, and only then gives the folder its name:
an upload that was cut never counts.
"""

import asyncio
import hashlib
import os
import random
import secrets
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from tfyard.errors import TfyardError
from tfyard.file_trees import Copied
from tfyard.file_trees import CopyProgress as FileProgress
from tfyard.job_input import code_folder
from tfyard.job_input.code_folder import CodeFolder, FolderFile
from tfyard.kube import Access, Client, Transient, requests
from tfyard.kube.pod_streams import STDOUT, PodCommand, RemoteProcess, start
from tfyard.model.backoff import Backoff
from tfyard.model.callbacks import Say
from tfyard.remote.copying import transfer
from tfyard.remote.helper_pods import helper_pod
from tfyard.remote.helper_pods.helper_pod import HelperPod, Mount
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import code_claim
from tfyard.remote.submitting.code_lookup import CodeLocation, ListedFile
from tfyard.remote.submitting.code_plan import Plan, Progress
from tfyard.render import archive, scripts
from tfyard.render.code import ON_CLAIM

AT = "/claim"
ATTEMPTS = 5
BACKOFF = Backoff(first=0.5, longest=10.0, jitter=0.5)
LAST_WORDS = 2000
"""Bytes of the pod's output that are kept."""
PATIENCE = 5.0
"""Seconds for the pod to say why it stopped reading."""


class UploadFailed(TfyardError):
    """The pod could not unpack the code, or its checksums are wrong."""


async def send(access: Access, plan: Plan, say: Say, progress: Progress) -> Plan:
    """Sends the code; the plan, with what was deleted as its outdated code."""
    helper = HelperPod(
        namespace=plan.job.namespace,
        purpose="code",
        mounts=(Mount(plan.holder, AT),),
        image=plan.helper_image or helper_pod.DEFAULT_IMAGE,
        node=plan.node,
        like=plan.job.roles[0].template,
    )
    async with Client(access) as client, helper_pod.running(client, helper, say) as pod:
        plan = await _without_used_again(client, plan)
        await _with_retries(client, plan, pod, (say, progress))
    return plan


async def _without_used_again(client: Client, plan: Plan) -> Plan:
    """Old code may have been submitted again since the plan was made."""
    claim = await client.send(requests.get(requests.CLAIMS.path(plan.job.namespace, plan.holder)))
    old = code_claim.old_of(code_claim.sent_to(claim))
    return replace(plan, outdated=tuple(each for each in plan.outdated if each in old))


async def fetch(
    access: Access, tfjob: StoredTFJob, where: CodeLocation, to: tuple[Path, str], progress: FileProgress
) -> Copied:
    """Fetches code from a claim, as any folder that tasks mount. `to`: the folder, and the helper's image."""
    folder, image = to
    options = transfer.CopyOptions(image=image or helper_pod.DEFAULT_IMAGE)
    async with Client(access) as client:
        return await transfer.fetch(client, tfjob, where.at, folder, progress, options)


async def listed(
    access: Access, tfjob: StoredTFJob, where: CodeLocation, say: Say, image: str = ""
) -> list[ListedFile]:
    """The files of code on a claim, with their sizes."""
    helper = HelperPod(
        namespace=tfjob.namespace,
        purpose="code",
        mounts=(Mount(where.name, AT, where.sub_path, read_only=True),),
        image=image or helper_pod.DEFAULT_IMAGE,
        owner=tfjob.manifest,
    )
    line = 'cd "$1" && find . -type f -exec stat -c "%s %n" {} +'
    async with Client(access) as client, helper_pod.running(client, helper, say) as pod:
        command = PodCommand(
            namespace=tfjob.namespace,
            pod=pod,
            container=helper_pod.CONTAINER,
            argv=("/bin/sh", "-c", line, "list", AT),
        )
        async with start(client, command) as process:
            output = [data async for channel, data in process.output() if channel == STDOUT]
            await process.wait()
    rows = [row.split(" ./", 1) for row in b"".join(output).decode(errors="replace").splitlines()]
    return sorted((ListedFile(path, int(count)) for count, path in rows), key=lambda each: each.path)


async def _with_retries(client: Client, plan: Plan, pod: str, to: tuple[Say, Progress]) -> None:
    say, progress = to
    backoff = BACKOFF
    while True:
        try:
            return await _once(client, plan, pod, progress)
        except Transient as problem:
            backoff = backoff.next()
            if backoff.failures == ATTEMPTS:
                raise
            say(f"the connection broke ({problem}); the code is sent again")
            await asyncio.sleep(backoff.delay(random.random()))


async def _once(client: Client, plan: Plan, pod: str, progress: Progress) -> None:
    assert plan.folder is not None
    listed = _list(plan.folder, plan.sums)
    words = (f"{AT}/{ON_CLAIM}", plan.hash, secrets.token_hex(4), hashlib.sha256(listed).hexdigest())
    argv = ("/bin/sh", "-c", scripts.read("receive.sh"), "receive", *words, *plan.outdated)
    command = PodCommand(
        namespace=plan.job.namespace, pod=pod, container=helper_pod.CONTAINER, argv=argv, stdin=True
    )
    async with start(client, command) as process:
        ending = asyncio.create_task(_ending(process))
        try:
            await _write(process, _members(plan, listed, progress))
            _check(*await ending)
        except Transient:
            await _explain(ending)
            raise
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)


async def _write(process: RemoteProcess, members: Iterator[archive.ArchiveFile]) -> None:
    """Compresses at a low level: the network is rarely faster, and weights do not get smaller."""
    for part in archive.gzip(archive.tar(members), level=1):
        await process.write(part)
    await process.close_stdin()


def _members(plan: Plan, listed: bytes, progress: Progress) -> Iterator[archive.ArchiveFile]:
    assert plan.folder is not None
    yield archive.ArchiveFile("sums", len(listed), False, (listed,))
    done = 0
    for file, expected in zip(plan.folder.files, plan.sums, strict=True):
        yield archive.ArchiveFile(f"code/{file.path}", file.size, file.executable, _same(file, expected))
        done += file.size
        progress(done, plan.size)


def _same(file: FolderFile, expected: str) -> Iterator[bytes]:
    """Content of the file, which must still be what was hashed."""
    checksum = hashlib.sha256()
    for part in code_folder.contents(file):
        checksum.update(part)
        yield part
    if checksum.hexdigest() != expected:
        raise code_folder.FileChanged(f"code: {file.path} was changed while it was being sent; try again")


def _list(folder: CodeFolder, sums: tuple[str, ...]) -> bytes:
    """List of checksums, as sha256sum writes it."""
    lines = zip(folder.files, sums, strict=True)
    return b"".join(f"{each}  ".encode() + os.fsencode(file.path) + b"\n" for file, each in lines)


async def _ending(process: RemoteProcess) -> tuple[int, str]:
    """Exit code and last output of the process."""
    output = b""
    async for _, data in process.output():
        output = (output + data)[-LAST_WORDS:]
    return await process.wait(), output.decode(errors="replace").strip()


async def _explain(ending: asyncio.Task[tuple[int, str]]) -> None:
    """Raises the error of the process, if it ended by itself."""
    done, _ = await asyncio.wait([ending], timeout=PATIENCE)
    if done and ending.exception() is None:
        _check(*ending.result())


def _check(code: int, output: str) -> None:
    if code:
        last = output.splitlines()[-1] if output else f"exit code {code}"
        raise UploadFailed(f"the code could not be stored on the claim: {last}")
