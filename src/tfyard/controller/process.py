"""The operator as a process: its identity, its lease, its doors, and an orderly end."""

import asyncio
import logging
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tfyard import kube, planner
from tfyard.formats.controllerconfig import OperatorConfig
from tfyard.install import permissions
from tfyard.install.permissions import Permission

from . import crds, gang_schedulers
from .config import read_config, read_server_script, site
from .health import Bind, HealthServer, Questions
from .leader_election import Leadership, new_identity
from .lease import Candidate
from .operator import Operator, Settings
from .permissions import PermissionCheck

log = logging.getLogger(__name__)

FAREWELL = 5.0
"""Seconds; a kubelet grants 30 for everything."""
OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Options(Struct, frozen=True, kw_only=True):
    """As given on the command line."""

    namespaces: tuple[str, ...] = ()
    config: str | None = None
    compat: str | None = None
    gang_scheduler: str = "none"
    gang_scheduler_name: str = ""
    kueue_pod_groups: bool = False
    install_crds: bool = False
    leader_elect: bool = True
    lease_namespace: str = ""
    bind: str = ":8080"


async def serve(access: kube.Access, options: Options) -> None:
    """Until SIGTERM or SIGINT; then the last things are said and the lease is handed back, so that a standby
    takes over at once."""
    place = _site(options)
    async with kube.Client(access) as client, AsyncExitStack() as doors:
        resources = await crds.ready(client, install=options.install_crds)
        gang = await gang_schedulers.find(client, options.gang_scheduler, options.gang_scheduler_name)
        place = replace(place, gang=gang, queues_pods=options.kueue_pod_groups)
        leadership = _leadership(access, options)
        settings = Settings(site=place, namespaces=options.namespaces, may_write=leadership.is_current)
        if not options.leader_elect:
            settings = replace(settings, may_write=lambda: True)
        operator = Operator(client, settings, resources)
        needed = _needed(operator, leadership.candidate if options.leader_elect else None)
        check = PermissionCheck(client, needed)
        questions = Questions(
            metrics=lambda: _metrics(operator), why_not_ready=lambda: _why_not_ready(operator, check)
        )
        await doors.enter_async_context(HealthServer(Bind.parse(options.bind), questions))
        checking = asyncio.create_task(check.run())
        try:
            await _run(operator, leadership if options.leader_elect else None)
        finally:
            await _end(checking)


def _site(options: Options) -> planner.Site:
    config = read_config(Path(options.config)) if options.config else OperatorConfig()
    place = site(config, read_server_script(config))
    if not place.domain:  # where training-operator's deployments say it
        place = replace(place, domain=os.environ.get("CUSTOM_CLUSTER_DOMAIN", ""))
    if options.compat == "kubeflow":
        return replace(place, services="per-replica", dialect="kubeflow")
    return place


def _leadership(access: kube.Access, options: Options) -> Leadership:
    own = OWN_NAMESPACE.read_text().strip() if OWN_NAMESPACE.exists() else ""
    first = next(iter(options.namespaces), "default")
    candidate = Candidate(
        new_identity(), options.lease_namespace or os.environ.get("POD_NAMESPACE") or own or first
    )
    return Leadership(access, candidate, on_lost=lambda reason: log.warning("lost the lease: %s", reason))


async def _run(operator: Operator, leadership: Leadership | None) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    working = asyncio.create_task(operator.run())
    leading = asyncio.create_task(_lead(operator, leadership)) if leadership else None
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait(
        [task for task in (working, leading, stopping) if task], return_when=asyncio.FIRST_COMPLETED
    )
    if done == {stopping}:
        await _say_farewell(operator)
    if leadership is not None and leading is not None and not leading.done():
        leadership.hand_back()
        await asyncio.wait([leading], timeout=leadership.terms.renew_deadline)
    for task in (working, leading, stopping):
        await _end(task)
    for task in done - {stopping}:
        task.result()


async def _say_farewell(operator: Operator) -> None:
    """While the lease is ours still: events are kept nowhere but here. A server that does not answer is not
    waited for: all that jobs must remember is stored already."""
    try:
        await asyncio.wait_for(operator.wind_down(), FAREWELL)
    except TimeoutError:
        log.warning("ends with things unsaid: the server did not take them within %g s", FAREWELL)


async def _lead(operator: Operator, leadership: Leadership) -> None:
    """Whenever we come to lead, everything is looked at: what happened before is not in our queue."""

    async def keep_looking() -> None:
        led = False
        while True:
            leads = leadership.is_current()
            if leads and not led:
                operator.look_at_everything()
            elif leads:
                operator.catch_up()
            operator.metrics.is_leader.set(int(leads))
            led = leads
            await asyncio.sleep(leadership.terms.retry_period / 4)

    looking = asyncio.create_task(keep_looking())
    try:
        await leadership.run()
    finally:
        await _end(looking)


async def _end(task: "asyncio.Task[object] | None") -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])


def _metrics(operator: Operator) -> str:
    operator.metrics.queue_depth.set(len(operator.queue))
    return operator.metrics.render()


def _needed(operator: Operator, candidate: Candidate | None) -> list[Permission]:
    settings = operator.settings
    needed = [each for group in operator.resources for each in permissions.of_jobs(group)]
    needed += [*permissions.of_children(), permissions.EVENTS]
    gang = settings.site.gang
    if gang is not None:
        needed += permissions.of_pod_groups(gang_schedulers.groups_of(gang).group, patch=gang.by != "core")
    if settings.site.queues_pods:
        needed.append(permissions.QUEUED_PODS)
    lease = [permissions.of_lease(candidate.namespace)] if candidate else []
    return permissions.in_namespaces(needed, settings.namespaces) + lease


def _why_not_ready(operator: Operator, check: PermissionCheck) -> list[str]:
    missing = [f"missing permission: {permission}" for permission in check.missing]
    return missing + ([] if operator.synced.is_set() else ["the first lists are not complete"])
