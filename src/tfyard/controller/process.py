"""The operator as a process: options, leader election, health server, an orderly shutdown, and another start when
the cluster serves a new API that the operator uses."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tfyard import kube, planner
from tfyard.errors import TfyardError
from tfyard.formats.controllerconfig import OperatorConfig
from tfyard.install import permissions
from tfyard.kube import requests
from tfyard.kube.bind import Bind
from tfyard.kube.requests import BOTH_TFJOBS
from tfyard.model.names import OPERATOR_PORT
from tfyard.model.permission import Permission
from tfyard.planner.gang import API_VERSIONS

from . import crds, gang_schedulers
from .config import read_config, read_server_script, site
from .health import HealthServer, PermissionCheck, Questions
from .leader_election import NO_LEADER, Leadership, new_identity
from .lease import Candidate
from .operator import Operator, OperatorSettings

log = logging.getLogger(__name__)

LOOK_EVERY = 15.0
"""Seconds between two checks for APIs that the cluster did not have at the start, and for CRDs of TFJob that were
replaced: one small request each."""
SHUTDOWN_TIMEOUT = 5.0
"""Seconds for sending the last events; a kubelet grants 30 for the whole shutdown."""
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class OperatorOptions(Struct, frozen=True, kw_only=True):
    """Options of the command line."""

    namespaces: tuple[str, ...] = ()
    config: str | None = None
    compat: str | None = None
    gang_scheduler: str = "none"
    gang_scheduler_name: str = ""
    kueue_pod_groups: bool = False
    install_crds: bool = False
    leader_elect: bool = True
    lease_namespace: str = ""
    bind: str = f":{OPERATOR_PORT}"


class Apis(Struct, frozen=True):
    """The APIs of the cluster that an operator uses."""

    jobs: list[kube.Resource]
    gang: planner.Gang | None


async def serve(access: kube.Access, options: OperatorOptions) -> None:
    """Run the operator until SIGTERM or SIGINT; then send the last events and release the lease, so that a standby
    takes over at once. When the cluster serves a new API that the operator uses, start again with it."""
    site, stop = _site(options), asyncio.Event()
    async with kube.Client(access) as client:
        apis: Apis | None = await _find_apis(client, options, is_start=True)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        while apis is not None:
            leadership = _leadership(access, options) if options.leader_elect else None
            settings = OperatorSettings(
                site=replace(site, gang=apis.gang),
                namespaces=options.namespaces,
                may_write=leadership.is_current if leadership else lambda: True,
            )
            operator, unserved = Operator(client, settings, apis.jobs), list[str]()
            operator.metrics.is_leader.set(int(leadership is None))
            async with _health_server(client, options, operator, leadership, unserved):
                more = _find_more_apis(client, options, apis, unserved)
                apis = await _run(operator, leadership, stop, more)


async def _find_apis(client: kube.Client, options: OperatorOptions, *, is_start: bool = False) -> Apis:
    wait = crds.PUBLICATION_TIMEOUT if is_start else 0.0
    jobs = await crds.ready(client, install=is_start and options.install_crds, wait=wait)
    return Apis(jobs, await gang_schedulers.find(client, options.gang_scheduler, options.gang_scheduler_name))


async def _find_more_apis(
    client: kube.Client, options: OperatorOptions, apis: Apis, unserved: list[str]
) -> Apis:
    """Return when the cluster serves an API that was absent and can be used. If it cannot be used, because its CRD
    drops what a status must remember or because a permission is missing, the operator goes on without it. A CRD in
    use that drops it ends the operator: finished tasks would run again. `unserved` is kept up to date: the jobs in
    use whose CRD is gone."""
    absent = {f"{each.group}/{each.version}" for each in BOTH_TFJOBS if each not in apis.jobs}
    if options.gang_scheduler == "auto" and apis.gang is None:
        absent |= {*API_VERSIONS.values()}
    in_use = [f"{each.group}/{each.version}" for each in apis.jobs]
    logged, checked = "", list[str | None]()
    while True:
        await asyncio.sleep(LOOK_EVERY)
        try:
            _log_unserved(unserved, await crds.unserved(client, apis.jobs))
            published = await crds.published_apis(client)
            if checked != (schemas := [published.get(name) for name in in_use]):
                await crds.refuse_forgetful(client, apis.jobs)
                checked = schemas
            new = absent & published.keys()
            usable = await _find_apis(client, options) if new else apis
            if usable != apis:
                await _list_each(client, options, usable)
                log.info("starting again, because the cluster now serves %s", ", ".join(sorted(new)))
                return usable
        except crds.CrdForgets:
            raise
        except kube.Transient:
            continue  # the watches report that the server does not answer
        except TfyardError as problem:
            if logged != str(problem):
                log.warning("cannot use more APIs: %s (retrying)", problem)
            logged = str(problem)


def _log_unserved(unserved: list[str], now: list[str]) -> None:
    """Note which jobs are not served, and log a change."""
    if now and now != unserved:
        log.warning("the cluster does not serve %s", ", ".join(now))
    elif unserved and not now:
        log.info("all APIs are served")
    unserved[:] = now


async def _list_each(client: kube.Client, options: OperatorOptions, apis: Apis) -> None:
    """Raise errors that the first list of a watch would raise: no job is reconciled before that list."""
    groups = [gang_schedulers.groups_of(apis.gang.by)] if apis.gang else []
    for resource in (*apis.jobs, *groups):
        for namespace in options.namespaces or ("",):
            await client.send(requests.get(resource.path(namespace), {"limit": "1"}))


def _site(options: OperatorOptions) -> planner.Site:
    config = read_config(Path(options.config)) if options.config else OperatorConfig()
    settings = replace(site(config, read_server_script(config)), queues_pods=options.kueue_pod_groups)
    if not settings.domain:  # deployments of training-operator set this variable
        settings = replace(settings, domain=os.environ.get("CUSTOM_CLUSTER_DOMAIN", ""))
    if options.compat == "kubeflow":
        return replace(settings, services="per-replica", dialect="kubeflow", kubeflow=True)
    return settings


def _leadership(access: kube.Access, options: OperatorOptions) -> Leadership:
    own = OWN_NAMESPACE.read_text().strip() if OWN_NAMESPACE.exists() else ""
    first = next(iter(options.namespaces), "default")
    namespace = options.lease_namespace or os.environ.get("POD_NAMESPACE") or own or first
    return Leadership(access, Candidate(new_identity(), namespace))


def _needed(operator: Operator, leadership: Leadership | None) -> list[Permission]:
    site = operator.settings.site
    needed = [each for group in operator.resources.jobs for each in permissions.of_jobs(group)]
    needed += [*permissions.of_children(), permissions.EVENTS]
    if site.gang is not None:
        group = gang_schedulers.groups_of(site.gang.by).group
        needed += permissions.of_pod_groups(group, patch=site.gang.by != "core")
    lease = [permissions.of_lease(leadership.candidate.namespace)] if leadership else []
    return permissions.in_namespaces(needed, operator.settings.namespaces) + lease


@asynccontextmanager
async def _health_server(
    client: kube.Client,
    options: OperatorOptions,
    operator: Operator,
    leadership: Leadership | None,
    unserved: list[str],
) -> AsyncIterator[None]:
    needed = _needed(operator, leadership)
    check = PermissionCheck(client, needed, operator.metrics.missing_permissions.set)

    def why_not_ready() -> list[str]:
        absent = [f"the cluster does not serve {name}" for name in unserved]
        return absent + _why_not_ready(operator, check, leadership)

    questions = Questions(metrics=operator.metrics.render, why_not_ready=why_not_ready)
    async with HealthServer(Bind.parse(options.bind), questions):
        checking = asyncio.create_task(check.run())
        try:
            yield
        finally:
            await _cancel(checking)


def _why_not_ready(operator: Operator, check: PermissionCheck, leadership: Leadership | None) -> list[str]:
    reasons = [f"missing permission: {permission}" for permission in check.missing]
    if not check.has_answer:
        reasons.append("the permissions are not checked yet")
    if not operator.synced.is_set():
        reasons.append("the first lists are not complete")
    if leadership and (seconds := leadership.seconds_without_leader()) > NO_LEADER:
        reasons.append(f"no leader for {seconds:.0f} s")
    return reasons


async def _run(
    operator: Operator, leadership: Leadership | None, stop: asyncio.Event, more: Coroutine[Any, Any, Apis]
) -> Apis | None:
    """Run the operator; returns the APIs to start again with, None if it was stopped."""
    working, looking = asyncio.create_task(operator.run()), asyncio.create_task(more)
    leading = asyncio.create_task(_lead(operator, leadership)) if leadership else None
    stopping = asyncio.create_task(stop.wait())
    tasks: list[asyncio.Task[Any]] = [task for task in (working, leading, stopping, looking) if task]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if done <= {stopping, looking}:
        await _drain(operator)
    if leadership is not None and leading is not None and not leading.done():
        leadership.release()
        await asyncio.wait([leading], timeout=leadership.timing.renew_deadline)
    for task in tasks:
        await _cancel(task)
    for task in done - {stopping}:
        task.result()
    return looking.result() if looking in done and not stop.is_set() else None


async def _drain(operator: Operator) -> None:
    """Send the last events before the lease is released: they are stored nowhere else. A server that does not
    answer is not waited for: all that jobs must remember is stored already."""
    log.info("stopping: sending the last events")
    try:
        async with asyncio.timeout(SHUTDOWN_TIMEOUT):
            await operator.drain()
    except TimeoutError:
        log.warning("stopped with events unsent: no answer from the server within %g s", SHUTDOWN_TIMEOUT)


async def _lead(operator: Operator, leadership: Leadership) -> None:
    """Take part in the leader election. A new leader reconciles all jobs: earlier changes are not in its queue."""

    async def follow_leadership() -> None:
        was_leader = False
        while True:
            is_leader = leadership.is_current()
            if is_leader and not was_leader:
                operator.enqueue_all()
            elif is_leader:
                operator.enqueue_deferred()
            operator.metrics.is_leader.set(int(is_leader))
            operator.metrics.without_leader.set(leadership.seconds_without_leader())
            was_leader = is_leader
            await asyncio.sleep(leadership.timing.retry_period / 4)

    following = asyncio.create_task(follow_leadership())
    try:
        await leadership.run()
    finally:
        await _cancel(following)


async def _cancel(task: "asyncio.Task[object] | None") -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])
