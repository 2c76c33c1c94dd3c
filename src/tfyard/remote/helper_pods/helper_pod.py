"""Short-lived pods that mount a job's claims: to copy from them or to them, also when no pod of the job runs.

    async with running(client, Helper(namespace="ml", purpose="copy", mounts=(Mount("out", "/0"),)), say) as pod:
        ...                                                   # exec in its container `helper`

They pass PodSecurity `restricted`, and are deleted however the block is left. A helper without a command of its
own ends when its client was gone for a minute: the client holds a command in it, which ends with the connection.
The next helper of the namespace deletes what has ended.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.kube import (
    Client,
    Forbidden,
    Kind,
    KubeError,
    NotFound,
    Refused,
    Transient,
    list_all,
    requests,
)
from tfyard.kube.pod_streams import PodCommand, start
from tfyard.model import Manifest, names, restricted, tensorflow_container
from tfyard.model.callbacks import Say
from tfyard.model.container_reasons import CRASH_LOOP, IMAGE_PROBLEMS, PULL_FAILED
from tfyard.model.restricted import USER
from tfyard.remote.reading.events import EVENTS
from tfyard.remote.reading.refusals import EDIT, missing_right
from tfyard.views.objects import EventView
from tfyard.views.pods import PodView
from tfyard.views.program import waits_for

DEFAULT_IMAGE = names.HELPER_IMAGE
CONTAINER = "helper"
LABEL = names.HELPER
LONGEST_START = 300.0
"""Seconds until the pod must run: a cluster may have to add a node first."""
PATIENCE = 3.0
"""Seconds until the user is told what the pod waits for."""
LOOK_EVERY = 0.25
ALONE = 60
"""Seconds without a client, as when that was killed, after which the pod ends and so releases its claims."""
BEATS = 12
"""Looks of the pod within this time whether its client is there."""
SIGNS = "/tfyard-client"
"""Folder of the file by which the client shows that it is there."""
HOLD = f"while read -r _; do : > {SIGNS}/here; done"
"""Command that the client holds: its input, and with it the loop, ends with the connection."""
LONGEST_DELETION = 15.0
PROBLEMS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", CRASH_LOOP)
OF_USER = ("runAsUser", "runAsGroup", "supplementalGroups", "fsGroup")

_POD = msgspec.json.Decoder(PodView)
_PODS, _EVENTS = Kind(PodView), Kind(EventView)


class HelperFailed(TfyardError):
    """The pod was refused, cannot start, or ended too early."""


class Mount(Struct, frozen=True):
    claim: str
    at: str
    sub_path: str = ""
    read_only: bool = False


class HelperPod(Struct, frozen=True, kw_only=True):
    namespace: str
    purpose: str
    """One word, for the name and the label of the pod."""
    mounts: tuple[Mount, ...]
    image: str = DEFAULT_IMAGE
    owner: Manifest | None = None
    """TFJob with which the pod is deleted at the latest."""
    node: str = ""
    """Node of a claim that only one node can use."""
    deadline: int = 3600
    argv: tuple[str, ...] = ()
    """Command; default: the pod waits until it is deleted, or alone."""
    memory: str = "256Mi"
    like: Manifest = {}
    """Pod template with the user, pull secrets and tolerations for the pod."""
    user: int | None = None
    """Id of the user, instead of the template's."""


@asynccontextmanager
async def running(client: Client, helper: HelperPod, say: Say) -> AsyncIterator[str]:
    """Name of the pod, once it runs. The pod is deleted on exit, on an error and on cancellation."""
    await _delete_ended(client, helper.namespace)
    pod = manifest(helper, f"tfyard-{helper.purpose}-{secrets.token_hex(4)}")
    path = requests.PODS.path(helper.namespace, pod["metadata"]["name"])
    try:
        await _create(client, pod)
        async with asyncio.timeout(
            LONGEST_START + PATIENCE
        ):  # a server that does not answer must not block for ever
            await _until_running(client, helper, path, say)
        async with _held(client, helper, str(pod["metadata"]["name"])):
            yield str(pod["metadata"]["name"])
    finally:
        await _finish(asyncio.create_task(_delete(client, path, say)))


# --- the pod


def manifest(helper: HelperPod, name: str) -> Manifest:
    claims = list(dict.fromkeys(mount.claim for mount in helper.mounts))
    volumes = {claim: f"claim-{index}" for index, claim in enumerate(claims)}
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": helper.deadline,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _pod_security(helper),
        "containers": [_container(helper, volumes)],
        "volumes": [
            *(
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                for claim, volume in volumes.items()
            ),
            *(() if helper.argv else ({"name": "signs", "emptyDir": {}},)),
        ],
        **{
            key: value
            for key in ("imagePullSecrets", "tolerations")
            if (value := _spec(helper.like).get(key))
        },
        **({"nodeName": helper.node} if helper.node else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(helper, name), "spec": spec}


def _metadata(helper: HelperPod, name: str) -> Manifest:
    """The pod must not look like a task: it has no labels of a job, and its owner is not its controller."""
    labels = {LABEL: helper.purpose, "app.kubernetes.io/managed-by": "tfyard"}
    metadata: Manifest = {"name": name, "namespace": helper.namespace, "labels": labels}
    if helper.owner:
        of = helper.owner["metadata"]
        owner = {key: helper.owner[key] for key in ("apiVersion", "kind")}
        metadata["ownerReferences"] = [{**owner, "name": of["name"], "uid": of["uid"]}]
    return metadata


def _container(helper: HelperPod, volumes: dict[str, str]) -> Manifest:
    mounts: list[Manifest] = []
    for mount in helper.mounts:
        sub_path = {"subPath": mount.sub_path} if mount.sub_path else {}
        only = {"readOnly": True} if mount.read_only else {}
        mounts.append({"name": volumes[mount.claim], "mountPath": mount.at, **sub_path, **only})
    if not helper.argv:
        mounts.append({"name": "signs", "mountPath": SIGNS})
    return {
        "name": CONTAINER,
        "image": helper.image,
        "command": [*(helper.argv or ("sh", "-c", _waiting()))],
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": helper.memory},  # a quota may ask for both
        },
        "securityContext": restricted.CONTAINER,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _waiting() -> str:
    """Script that ends when no client was there for a minute."""
    look = f"sleep {ALONE / BEATS:g}; left=$((left - 1))"
    seen = f"if [ -e {SIGNS}/here ]; then rm -f {SIGNS}/here; left={BEATS}; fi"
    return f"left={BEATS}; while [ $left -gt 0 ]; do {look}; {seen}; done"


def _pod_security(helper: HelperPod) -> Manifest:
    """The pod runs as the user of the job's pods, as files belong to that user; as root only if asked for."""
    context = {**(_spec(helper.like).get("securityContext") or {})}
    context |= tensorflow_container(helper.like).get("securityContext") or {}
    context |= {} if helper.user is None else {"runAsUser": helper.user}
    user = {key: context[key] for key in OF_USER if context.get(key) is not None}
    if "runAsUser" not in user:
        user = {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER, **user}
    return {
        "runAsNonRoot": user["runAsUser"] != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroupChangePolicy": "OnRootMismatch",
        **user,
    }


def _spec(template: Manifest) -> Manifest:
    spec: Manifest = template.get("spec") or {}
    return spec


# --- its life


@asynccontextmanager
async def _held(client: Client, helper: HelperPod, name: str) -> AsyncIterator[None]:
    """Shows the pod during the block that its client is there."""
    holding = None if helper.argv else asyncio.create_task(_hold(client, helper.namespace, name))
    try:
        yield
    finally:
        if holding:
            holding.cancel()
            await asyncio.wait([holding])
            if not holding.cancelled():
                holding.result()


async def _hold(client: Client, namespace: str, name: str) -> None:
    """Begins again after the connection broke. Why the pod cannot be entered is reported by the block itself."""
    command = PodCommand(
        namespace=namespace, pod=name, container=CONTAINER, argv=("sh", "-c", HOLD), stdin=True
    )
    while True:
        with suppress(KubeError):
            async with start(client, command) as process:
                while True:
                    await process.write(b"\n")
                    await asyncio.sleep(ALONE / BEATS)
        await asyncio.sleep(ALONE / BEATS)


async def _delete_ended(client: Client, namespace: str) -> None:
    """Deletes helpers whose client was killed."""
    for pod in (await list_all(client, _PODS, requests.PODS.path(namespace), {"labelSelector": LABEL})).items:
        if pod.is_over:
            with suppress(Refused):  # gone already, or the user may not delete it: it does no harm
                path = requests.PODS.path(namespace, pod.name)
                await client.send(requests.delete(path, uid=pod.metadata.uid, grace=0))


async def _create(client: Client, pod: Manifest) -> None:
    """Waits for the answer even when cancelled: the deletion must not overtake the creation."""
    request = requests.create(requests.PODS.path(pod["metadata"]["namespace"]), pod)
    sending = asyncio.create_task(client.send(request))
    try:
        await asyncio.shield(sending)
    except asyncio.CancelledError:
        await asyncio.wait([sending], timeout=LONGEST_DELETION)
        raise
    except Refused as problem:
        right = missing_right(problem, pod["metadata"]["namespace"], EDIT)
        raise HelperFailed(f"the helper pod was refused: {right or problem}") from None


async def _until_running(client: Client, helper: HelperPod, path: str, say: Say) -> None:
    loop = asyncio.get_running_loop()
    start, shown, waits = loop.time(), "", ""
    while (pod := await _get(client, path)).status.phase != "Running":
        if problem := _failure(pod, helper):
            raise HelperFailed(f"the helper pod cannot start: {problem}")
        passed = loop.time() - start
        if passed > PATIENCE:
            waits = await _warning(client, pod) or waits_for(pod)
        if passed > LONGEST_START:
            raise HelperFailed(f"the helper pod does not run after {LONGEST_START:.0f} s: {waits}")
        if waits != shown:
            say(f"waiting for the helper pod {pod.name}: {waits}")
            shown = waits
        await asyncio.sleep(LOOK_EVERY)


async def _get(client: Client, path: str) -> PodView:
    try:
        return await client.send(requests.get(path), _POD)
    except NotFound:
        raise HelperFailed("the helper pod was deleted before it ran") from None


def _failure(pod: PodView, helper: HelperPod) -> str:
    """Problem that does not go away by waiting; empty: none."""
    waiting, ended = pod.program.state.waiting, pod.program.state.terminated
    reason = waiting.reason if waiting else ""
    if reason in IMAGE_PROBLEMS and reason != PULL_FAILED:
        return f"{waits_for(pod)}; --helper-image chooses another image than {helper.image}"
    if reason in PROBLEMS:
        return waits_for(pod)
    if pod.is_over:
        ending = f"{ended.reason}, exit code {ended.exit_code}: {ended.message}" if ended else ""
        return " ".join(f"{pod.status.reason} {pod.status.message} {ending}".split())
    message = pod.unscheduled.message if pod.unscheduled else ""
    return message if "persistentvolumeclaim" in message and "not found" in message else ""


async def _warning(client: Client, pod: PodView) -> str:
    """Last warning: only events say why volumes cannot be mounted, and not every user may read them."""
    of = requests.selecting(fields={"involvedObject.uid": pod.metadata.uid, "type": "Warning"})
    try:
        events = (await list_all(client, _EVENTS, EVENTS.path(pod.metadata.namespace), of)).items
    except Forbidden:
        return ""
    warnings = sorted((each.at, f"{each.reason}: {each.message}") for each in events if each.at)
    return warnings[-1][1] if warnings else ""


async def _finish(deletion: asyncio.Task[None]) -> None:
    """A second cancellation does not cancel the deletion."""
    try:
        await asyncio.shield(deletion)
    except asyncio.CancelledError:
        await asyncio.wait([deletion])
        raise


async def _delete(client: Client, path: str, say: Say) -> None:
    """Deletes the pod by its random name, also if it is not known whether it was created."""
    try:
        async with asyncio.timeout(LONGEST_DELETION):
            while True:
                try:
                    await client.send(requests.delete(path, grace=0))
                    return
                except Transient:
                    await asyncio.sleep(1.0)
    except NotFound:
        return
    except (TimeoutError, Refused) as problem:
        name = path.rpartition("/")[2]
        say(f"the helper pod {name} could not be deleted, and ends by its deadline: {problem}")
