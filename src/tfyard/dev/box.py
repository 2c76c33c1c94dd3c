"""The process of a cluster, called a box in code: `python -m tfyard.dev.box FOLDER [PID]` starts all components,
keeps them running and ends them. With the id of a process, it ends when that process ends.

SIGTERM ends it so that its data can be used again; SIGQUIT ends it at once. If it is killed, the supervisors that
it has started kill all other processes of the cluster. The operator serves TFJobs of every version, with exactly
the permissions that it needs.
"""

import asyncio
import http.client
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tfyard.controller import crds, log_format
from tfyard.controlplane.components import LOOPBACK
from tfyard.controlplane.control_plane import CONTROLLERS, ControlPlane
from tfyard.controlplane.process import Process, ProcessFailed, SupervisorEnded
from tfyard.dev.connections import Listener, Stream, join
from tfyard.dev.folder import BoxFolder
from tfyard.dev.journal import Journal
from tfyard.dev.networking import Networking
from tfyard.dev.node import BoxNode
from tfyard.dev.shared_network import free_port
from tfyard.errors import TfyardError
from tfyard.formats.crd.documents import crds as definitions
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import permissions
from tfyard.install.roles import OPERATOR_RULES, SWEEP_ROLE, people_roles, rules, sweep_roles
from tfyard.install.settings import Settings
from tfyard.kube import Access, Client, NotFound, kubeconfig, requests
from tfyard.model import Manifest
from tfyard.model.backoff import Backoff
from tfyard.model.names import BOX_OPERATOR, OPERATOR_PORT
from tfyard.model.permission import RBAC

log = logging.getLogger(__name__)

READY_TIMEOUT, POLL, LOOK_EVERY, ROTATE_EVERY = 60.0, 0.1, 0.25, 10.0
BACKOFF = Backoff(first=0.2, longest=30.0)
STEADY = 60.0
"""Seconds of running after which a component that ends is started again as after a first failure."""


class Box:
    def __init__(self, folder: BoxFolder, journal: Journal, networking: Networking) -> None:
        self.folder, self.settings, self.journal = folder, folder.settings(), journal
        self.networking, self.addresses = networking, networking.addresses
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_urgent = self._is_ready = False

    async def run(self, until: int | None = None) -> None:
        """Run until a signal arrives, the process of the descriptor `until` ends, or a component ends that cannot
        be started again."""
        if until is not None:
            asyncio.get_running_loop().add_reader(until, self._stop, signal.SIGTERM)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)
        starting = asyncio.create_task(self._start_and_wait())
        await asyncio.wait([starting, self._over], return_when=asyncio.FIRST_COMPLETED)
        if not self._is_ready:
            starting.cancel()
        try:
            await starting
        except asyncio.CancelledError:
            log.info("stopped while it was starting")

    async def _start_and_wait(self) -> None:
        async with AsyncExitStack() as parts:
            try:
                await self._start(parts)
                self._spawn(self._rotate_logs())
                self._is_ready = True
                self.journal.ready()
                await self._over
            finally:
                await self._end_tasks()  # otherwise they would start components again that end now

    async def _start(self, parts: AsyncExitStack) -> None:
        plane = await self._control_plane(parts)
        client = await parts.enter_async_context(plane.client())
        self.journal.starting("controllers, scheduler, operator and node")
        node = BoxNode(folder=self.folder, plane=plane, client=client, networking=self.networking)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._controllers(plane))
            if self.settings.operator:
                group.create_task(self._operator(plane, client))
            else:
                group.create_task(forget_operator(client))
            await node.start(parts)

    # --- components

    async def _control_plane(self, parts: AsyncExitStack) -> ControlPlane:
        plane = ControlPlane(
            binaries=Path(self.settings.binaries), addresses=self.addresses, data=self.folder.data
        )
        self.folder.link(plane.folder)
        self.journal.describe(port=self.networking.port, kubernetes=plane.binaries.version)
        self.journal.starting("etcd and kube-apiserver")
        await parts.enter_async_context(plane)
        parts.callback(self._abandon_if_urgent, plane)
        self._write_kubeconfig(plane)
        listener = Listener(partial(_connect, plane.endpoint))
        await listener.start(sock=self.networking.listener)
        parts.push_async_callback(listener.close)
        return plane

    async def _controllers(self, plane: ControlPlane) -> None:
        await asyncio.gather(*(asyncio.to_thread(plane.start, name) for name in CONTROLLERS))
        for process in plane.processes:
            self._keep(process, partial(asyncio.to_thread, plane.start, process.name))

    def _write_kubeconfig(self, plane: ControlPlane) -> None:
        """Write the kubeconfig of users, which has the address of the listener."""
        server = f"https://{LOOPBACK}:{self.networking.port}"
        access = Access(replace(plane.admin.cluster, server=server), plane.admin.user)
        self.folder.kubeconfig.touch(mode=0o600)
        self.folder.kubeconfig.write_text(kubeconfig.dump(access, self.folder.name))

    async def _operator(self, plane: ControlPlane, client: Client) -> None:
        await install_operator(client)
        access = plane.write_kubeconfig(plane.access(BOX_OPERATOR, ()), "operator")
        port = OPERATOR_PORT if self.networking.network else free_port()
        bind = (self.addresses.address, port)
        argv = operator_command_line(str(access), f"{bind[0]}:{bind[1]}", self.settings.operator_config)
        process = plane.process("operator", argv)
        start = partial(asyncio.to_thread, _start_operator, process, bind)
        await start()
        self._keep(process, start)

    def _abandon_if_urgent(self, plane: ControlPlane) -> None:
        if self._is_urgent:
            plane.abandon()

    # --- tasks of this process

    async def _rotate_logs(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.folder.rotate_logs)
            except OSError as problem:
                log.warning("logs cannot be rotated: %s", problem)
            await asyncio.sleep(ROTATE_EVERY)

    def _keep(self, process: Process, start: Any) -> None:
        self._spawn(keep(process, start, self.journal))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        """End the cluster if a task failed: tasks end by themselves only if something cannot be repaired."""
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) and not self._over.done():
            self._over.set_exception(problem)

    async def _end_tasks(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _stop(self, number: signal.Signals) -> None:
        self._is_urgent |= number == signal.SIGQUIT
        if not self._over.done():
            self.journal.stopping()
            self._over.set_result(None)


async def _connect(apiserver: tuple[str, int], stream: Stream) -> None:
    await join(stream, await asyncio.open_connection(*apiserver))


async def keep(process: Process, start: Callable[[], Awaitable[object]], journal: Journal) -> None:
    """Start a process again whenever it ends, with a back-off. Raises SupervisorEnded if nothing can be started
    any more. `start` waits until the process is ready."""
    backoff = BACKOFF
    while True:
        started = time.monotonic()
        while process.running:
            await asyncio.sleep(LOOK_EVERY)
        journal.ended(process.name, process.log_tail(1))
        backoff = (BACKOFF if time.monotonic() - started > STEADY else backoff).next()
        await asyncio.sleep(backoff.delay())
        try:
            await start()
        except SupervisorEnded:
            raise
        except ProcessFailed as problem:
            log.warning("%s", problem)
            continue
        journal.restarted(process.name)


async def install_operator(client: Client) -> None:
    """Install what `tfyard install` does, without the Deployment: the CRDs, with all versions so that users can
    try old files, the operator's role, and the roles of the people who train."""
    for definition in definitions(VERSIONS):
        await client.send(requests.apply(requests.CRDS.path(name=definition["metadata"]["name"]), definition))
    await crds.ready(client, install=True, wait=crds.PUBLICATION_TIMEOUT)
    resources = {"ClusterRole": requests.CLUSTER_ROLES, "ClusterRoleBinding": requests.CLUSTER_ROLE_BINDINGS}
    for document in (*role_and_binding(), *people_roles(), *sweep_roles(Settings(image="tfyard")), drivers()):
        path = resources[document["kind"]].path(name=document["metadata"]["name"])
        await client.send(requests.apply(path, document))


async def forget_operator(client: Client) -> None:
    """Delete what says that the operator works here: kept data may be from a time when it did."""
    for resource in (requests.CLUSTER_ROLE_BINDINGS, requests.CLUSTER_ROLES):
        with suppress(NotFound):
            await client.send(requests.delete(resource.path(name=BOX_OPERATOR)))


def drivers() -> Manifest:
    """The binding by which sweeps are driven in all namespaces. Elsewhere, administrators bind the role. Pure.

    No subject means the ServiceAccount of one name in each namespace, so all ServiceAccounts are bound. A binding
    per namespace needs something that watches namespaces, and a sweep that comes before it is refused. It would
    protect nothing: the pods of this cluster are processes of one user of this machine."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": SWEEP_ROLE},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": SWEEP_ROLE},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:serviceaccounts"}],
    }


def role_and_binding() -> tuple[Manifest, Manifest]:
    """Role and binding with the rules of an installation, for the operator's user. Pure."""
    api, metadata = f"{RBAC}/v1", {"name": BOX_OPERATOR}
    allowed = rules([*OPERATOR_RULES, permissions.POD_LOGS, permissions.NODES])
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": BOX_OPERATOR}
    subject = {"apiGroup": RBAC, "kind": "User", "name": BOX_OPERATOR}
    return (
        {"apiVersion": api, "kind": "ClusterRole", "metadata": metadata, "rules": allowed},
        {"apiVersion": api, "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": reference}
        | {"subjects": [subject]},
    )


def operator_command_line(kubeconfig: str, bind: str, config: str) -> list[str]:
    """The operator's command line. There is only one operator, so no leader election: a restart takes no time."""
    return [
        *(sys.executable, "-m", "tfyard", "operator"),
        *("--kubeconfig", kubeconfig, "--bind", bind, "--no-leader-elect", "--log", "text"),
        *(["--config", config] if config else []),
    ]


def _start_operator(process: Process, bind: tuple[str, int]) -> None:
    """Start the operator and wait until it is ready."""
    process.start()
    end = time.monotonic() + READY_TIMEOUT
    while not _is_ready(bind):
        if not process.running:
            raise ProcessFailed(f"the operator ended before it was ready:\n{process.log_tail()}")
        if time.monotonic() > end:
            raise ProcessFailed(
                f"the operator is not ready after {READY_TIMEOUT:.0f} s:\n{process.log_tail()}"
            )
        time.sleep(POLL)


def _is_ready(bind: tuple[str, int]) -> bool:
    connection = http.client.HTTPConnection(*bind, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main() -> int:
    log_format.configure("text")
    folder = BoxFolder(Path(sys.argv[1]))
    if not folder.lock():
        log.error("another process runs this cluster")
        return 1
    journal = Journal(folder)
    try:
        until = _open_process(int(sys.argv[2])) if sys.argv[2:] else None
        networking = Networking.enter(folder.settings(), journal)
        try:
            asyncio.run(_run(folder, journal, networking, until))
        finally:
            networking.leave()
    except Exception as error:
        problem = _first(error)
        journal.failed(str(problem) or type(problem).__name__)
        if isinstance(problem, TfyardError | OSError):
            return 1
        raise
    return 0


def _first(problem: BaseException) -> BaseException:
    """The first exception of a group: the others follow from it."""
    return _first(problem.exceptions[0]) if isinstance(problem, BaseExceptionGroup) else problem


def _open_process(pid: int) -> int:
    """A descriptor that becomes readable when the process ends."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise TfyardError(f"process {pid} of --until-pid has ended") from None


async def _run(folder: BoxFolder, journal: Journal, networking: Networking, until: int | None) -> None:
    await Box(folder, journal, networking).run(until)


if __name__ == "__main__":
    sys.exit(main())
