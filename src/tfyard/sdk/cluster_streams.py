"""Connections to pods of a job on a cluster: commands in tasks, copies, ports and web pages."""

import asyncio
import os
import secrets
import signal
import stat
import sys
import termios
import tty as terminal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.file_trees import Copied, CopyProgress
from tfyard.kube import Access, Client, KubeError, pod_streams, requests
from tfyard.kube.pod_streams import PodCommand, RemoteProcess
from tfyard.model.callbacks import Say
from tfyard.remote.copying import job_paths, transfer
from tfyard.remote.helper_pods import helper_pod, pod_follow, tensorboard
from tfyard.remote.helper_pods import notebook as jupyter
from tfyard.remote.helper_pods.helper_pod import HelperPod as HelperPod
from tfyard.remote.helper_pods.pod_follow import PodChoice, PodFollow, PodReach
from tfyard.remote.reading import refusals
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.tasks import TaskContainer
from tfyard.remote.submitting import code_store, code_transfer
from tfyard.remote.submitting.code_lookup import CodeLocation, ListedFile
from tfyard.sdk import pages
from tfyard.sdk.forwarding import Forwarding, Port, listening
from tfyard.sdk.merging import merged
from tfyard.sdk.pages import LocalSide, Page, Ports
from tfyard.sdk.place import CommandEnded, CommandOutput, Copy, HelperOptions, NotebookOptions, TaskCommand

CHUNK = 1 << 16
STDIN = 0
CODE = "code"
"""Folder name of a copy of a job's code."""


class ClusterStreams:
    """Streams of one job, as it was found."""

    def __init__(self, access: Access, job: StoredTFJob, say: Say) -> None:
        self._access, self._job, self._say = access, job, say

    # --- commands in tasks

    def exec_here(self, where: TaskContainer, command: TaskCommand) -> int:
        with_streams = replace(_command(where, command), stdin=command.stdin, tty=command.tty)
        return asyncio.run(_in_terminal(self._access, with_streams, self._say))

    async def exec(
        self, containers: Sequence[TaskContainer], command: TaskCommand
    ) -> AsyncIterator[CommandOutput | CommandEnded]:
        async with Client(self._access) as client:
            async for event in merged(*(_in_task(client, where, command) for where in containers)):
                yield event

    # --- copies

    async def copy(self, wanted: Copy, progress: CopyProgress) -> Copied:
        if wanted.is_code:
            return await self._copy_code(wanted, progress)
        options = replace(_options(wanted.helper), task=wanted.task, into=wanted.into)
        async with Client(self._access) as client:
            if wanted.is_upload:
                return await transfer.send(client, self._job, wanted.here, wanted.path, progress, options)
            return await transfer.fetch(client, self._job, wanted.path, wanted.here, progress, options)

    async def _copy_code(self, wanted: Copy, progress: CopyProgress) -> Copied:
        if wanted.is_upload:
            raise Usage("the code of a job does not change: `tfyard submit` makes a new job")
        to = wanted.here / CODE if wanted.into else wanted.here
        return await code_store.fetch(self._access, self._job, to, progress, wanted.helper.image)

    async def copy_outputs(self, folder: Path, helper: HelperOptions, progress: CopyProgress) -> list[Copied]:
        """Copy what the tasks wrote to claims."""
        async with Client(self._access) as client:
            return await transfer.fetch_outputs(client, self._job, folder, progress, _options(helper))

    async def code_files(self, where: CodeLocation, helper: HelperOptions) -> list[ListedFile]:
        """The files of code on a claim."""
        return await code_transfer.listed(self._access, self._job, where, self._say, helper.image)

    # --- ports and pages

    @asynccontextmanager
    async def ports(self, task: str, ports: Sequence[Port]) -> AsyncIterator[Ports]:
        """Forward ports to a task; each connection goes to the current pod of the task."""
        async with Client(self._access) as client:
            pods = PodFollow(client, pod_follow.of_task(self._job, task), self._say)
            async with listening(PodReach(client, pods), ports, self._say) as made:
                over = asyncio.ensure_future(_over(client, self._job, pods, made))
                try:
                    yield Ports(made.bound, over)
                finally:
                    await pages.stop(over)

    @asynccontextmanager
    async def boards(
        self, others: Sequence[StoredTFJob], log_dir: str, helper: HelperOptions, here: LocalSide
    ) -> AsyncIterator[list[Page]]:
        """TensorBoard of each job that has one, and one in a helper pod for all others of a namespace."""
        async with Client(self._access) as client, AsyncExitStack() as stack:
            made, unserved = list[Page](), list[tensorboard.Summaries]()
            for job in (self._job, *others):
                choice = None if log_dir else await tensorboard.beside(client, job)
                if choice is None:
                    part = tensorboard.summaries(job, log_dir)
                    unserved.append(replace(part, node=await job_paths.node_of(client, job, part.mounts)))
                else:
                    making = beside(client, choice, f"TensorBoard of {job.name}", here)
                    made.append(await stack.enter_async_context(making))
            for parts in tensorboard.shared(unserved):
                pod = tensorboard.helper(parts, helper.image, helper.user)
                title = f"TensorBoard of {', '.join(part.name for part in parts)}"
                made.append(await stack.enter_async_context(in_helper(client, pod, title, here)))
            yield made

    @asynccontextmanager
    async def notebook(self, wanted: NotebookOptions, here: LocalSide) -> AsyncIterator[Page]:
        """The page of the Jupyter server that was rendered for the job, else of one in a helper pod."""
        title = f"Jupyter for {self._job.name}"
        async with Client(self._access) as client:
            choice = await jupyter.beside(client, self._job)
            if choice is not None:
                here.say("its password is the one that it was rendered with")
                async with beside(client, choice, title, here) as page:
                    yield page
                return
            password = wanted.password or secrets.token_urlsafe(12)
            pod = await jupyter.helper(client, self._job, wanted.image, password, wanted.user)
            async with in_helper(client, pod, title, here) as page:
                page.password = "" if wanted.password else password
                yield page


def _options(helper: HelperOptions) -> transfer.CopyOptions:
    return transfer.CopyOptions(image=helper.image or helper_pod.DEFAULT_IMAGE, user=helper.user)


def _command(where: TaskContainer, command: TaskCommand) -> PodCommand:
    return PodCommand(namespace=where.namespace, pod=where.pod, container=where.container, argv=command.argv)


async def _in_task(
    client: Client, where: TaskContainer, command: TaskCommand
) -> AsyncIterator[CommandOutput | CommandEnded]:
    try:
        async with pod_streams.start(client, _command(where, command)) as process:
            async for stream, data in process.output():
                yield CommandOutput(where.task, stream, data)
            ended = CommandEnded(where.task, await process.wait())
    except KubeError as problem:
        ended = CommandEnded(where.task, 1, refusals.granted(problem, where.namespace, refusals.EDIT))
    yield ended


async def _over(client: Client, job: StoredTFJob, pods: PodFollow, made: Forwarding) -> str:
    """Wait until the job has ended, and say how. Raises if the pod of the task cannot be watched or reached."""
    watching = asyncio.ensure_future(pods.watch())
    ending = asyncio.ensure_future(pod_follow.until_ended(client, job))
    try:
        parts: list[asyncio.Future[Any]] = [watching, ending, made.refusal]
        done, _ = await asyncio.wait(parts, return_when=asyncio.FIRST_COMPLETED)
        if made.refusal in done:
            raise made.refusal.result()
        if watching in done:
            watching.result()
        return ending.result().text
    finally:
        await pages.stop(watching)
        await pages.stop(ending)


@asynccontextmanager
async def beside(client: Client, choice: PodChoice, title: str, here: LocalSide) -> AsyncIterator[Page]:
    """A page that is served by pods, which may be replaced."""
    pods = PodFollow(client, choice, here.say)
    watching = asyncio.ensure_future(_watched(pods))
    async with pages.page(title, PodReach(client, pods), here, watching) as made:
        yield made


@asynccontextmanager
async def in_helper(client: Client, helper: HelperPod, title: str, here: LocalSide) -> AsyncIterator[Page]:
    """A page that is served by a helper pod, which is deleted with it."""
    async with helper_pod.running(client, helper, here.say) as name:
        labels = {helper_pod.LABEL: helper.purpose}
        choice = PodChoice(title, helper.namespace, labels, lambda pod: pod.name == name)
        pods = PodFollow(client, choice, here.say)
        ending = asyncio.ensure_future(_ended(client, pods))
        async with pages.page(title, PodReach(client, pods), here, ending) as made:
            yield made


async def _watched(pods: PodFollow) -> str:
    await pods.watch()
    return ""


async def _ended(client: Client, pods: PodFollow) -> str:
    """Wait until the program of a helper pod has ended; the result is the end of its log."""
    watching = asyncio.create_task(pods.watch())
    ending = asyncio.create_task(pods.until_over())
    try:
        await asyncio.wait([watching, ending], return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
        return await _last_words(client, pods.choice.namespace, ending.result().name)
    finally:
        await pages.stop(watching)
        await pages.stop(ending)


async def _last_words(client: Client, namespace: str, pod: str) -> str:
    """The end of the log of a helper pod: why it ended, such as an image without the program."""
    query = {"container": helper_pod.CONTAINER, "tailLines": "5"}
    request = requests.get(requests.PODS.path(namespace, pod, "log"), query)
    try:
        async with client.stream(request, 10.0) as chunks:
            return b"".join([chunk async for chunk in chunks]).decode(errors="replace").strip()
    except KubeError as problem:
        return f"its pod has gone: {problem}"


# --- a command with this terminal: streams, size, keys


async def _in_terminal(access: Access, command: PodCommand, say: Say) -> int:
    """Run a command with the standard streams of this process. Input from a pipe or a file is always passed."""
    if command.tty and not os.isatty(STDIN):
        say("standard input is not a terminal, so the command gets none")
        command = replace(command, tty=False)
    command = replace(command, stdin=command.stdin or command.tty or _is_piped())
    async with Client(access) as client, pod_streams.start(client, command) as process:
        with _raw_terminal(process) if command.tty else nullcontext():
            sending = asyncio.create_task(_send_input(process)) if command.stdin else None
            try:
                await _print(process)
                return await process.wait()
            finally:
                if sending:
                    sending.cancel()
                    await asyncio.wait([sending])


async def _print(process: RemoteProcess) -> None:
    streams = {1: sys.stdout.buffer, 2: sys.stderr.buffer}
    async for channel, data in process.output():
        streams[channel].write(data)
        streams[channel].flush()


async def _send_input(process: RemoteProcess) -> None:
    """Send standard input to its end. A broken connection is reported where the output is read."""
    try:
        while data := await _read_input():
            await process.write(data)
        await process.close_stdin()
    except KubeError:
        return


async def _read_input() -> bytes:
    """Read from standard input. It stays blocking, because the shell shares it; regular files are always ready."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(STDIN, ready.set)
    except PermissionError:
        return os.read(STDIN, CHUNK)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(STDIN)
    return os.read(STDIN, CHUNK)


def _is_piped() -> bool:
    """Whether standard input is a pipe or a file, not /dev/null or a terminal."""
    try:
        mode = os.fstat(STDIN).st_mode
    except OSError:  # it is closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


@contextmanager
def _raw_terminal(process: RemoteProcess) -> Iterator[None]:
    """Pass each key to the command, Ctrl-C too; the terminal is restored at the end."""
    loop, before, sending = asyncio.get_running_loop(), termios.tcgetattr(STDIN), set[asyncio.Task[None]]()

    def resize() -> None:
        size = os.get_terminal_size(STDIN)
        task = loop.create_task(_resize(process, size))
        sending.add(task)
        task.add_done_callback(sending.discard)

    terminal.setraw(STDIN)
    loop.add_signal_handler(signal.SIGWINCH, resize)
    try:
        resize()
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
        termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


async def _resize(process: RemoteProcess, size: os.terminal_size) -> None:
    try:
        await process.resize(size.columns, size.lines)
    except KubeError:
        return  # reported where the output is read
