"""The ConfigMap of a sweep: its state, its job with the names of the parameters in braces, and who drives it.

Its driver says from time to time until when it will have been heard of: after that, another one may take the sweep
over.
"""

import base64
import gzip
import random
import socket
import zlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import NoSuchJob, NotPossible
from tfyard.kube import Kind, NotFound, requests, sync_lists
from tfyard.kube.decoding import decode
from tfyard.kube.sync import SyncClient
from tfyard.kube.times import timestamp
from tfyard.model import Manifest
from tfyard.model.corrupt_json import CORRUPT_JSON
from tfyard.model.names import SWEEP
from tfyard.model.sweep import SweepState
from tfyard.overview import sweep_text

if TYPE_CHECKING:
    from tfyard.formats import Document

STATE, JOB, SUMMARY = "sweep.json.gz", "job.yaml", "summary"
"""Keys of the ConfigMap. The state is packed: a thousand trials must fit into 1 MiB."""
DRIVER, DRIVEN_UNTIL, STOP = "tfyard.dev/driver", "tfyard.dev/driven-until", "tfyard.dev/stop"
"""Annotations: which process drives the sweep, until when it is taken for alive, and whether to stop."""

LARGEST_STATE = 32 << 20
"""Bytes of an unpacked state that are read; a thousand trials take a tenth of it."""

DriverKind = Literal["command", "job"]
SILENCE: dict[DriverKind, timedelta] = {"command": timedelta(minutes=1), "job": timedelta(minutes=10)}
"""How long a driver may be silent. The container of a Job waits up to five minutes before it is started again, and
its pod may have to wait for a node."""
NOT_DRIVEN = "no process drives it: trials that run go on to their end, and no others start"


class _SweepMeta(Struct, frozen=True, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str = ""
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class SweepObject(Struct, frozen=True, rename="camel"):
    """The ConfigMap as it was read."""

    metadata: _SweepMeta
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def path(self) -> str:
        return requests.CONFIG_MAPS.path(self.namespace, self.name)

    @property
    def stored(self) -> SweepState | None:
        """The state as it was stored; None: it is corrupt."""
        try:
            unpacked = _unpacked(base64.b64decode(self.binary_data[STATE]))
            return msgspec.json.decode(unpacked, type=SweepState)
        except (*CORRUPT_JSON, KeyError, ValueError, zlib.error):
            return None

    def state(self, now: datetime) -> SweepState:
        """The state that users are shown: a sweep that no process drives has stopped."""
        state = self.stored
        if state is None:
            raise NotPossible(f"the ConfigMap {self.name} is corrupt; `kubectl delete configmap {self.name}`")
        if state.phase != "Running" or self.is_driven(now):
            return state
        return replace(state, phase="Stopped", message=NOT_DRIVEN)

    @property
    def driver(self) -> str:
        return self.metadata.annotations.get(DRIVER, "")

    @property
    def kind(self) -> DriverKind:
        return "job" if self.driver.startswith("job") else "command"

    @property
    def driven_until(self) -> datetime:
        """The time until which its driver counts as alive; the beginning of time: it has none."""
        try:
            return datetime.fromisoformat(self.metadata.annotations.get(DRIVEN_UNTIL, "")).astimezone(UTC)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)

    def is_driven(self, now: datetime) -> bool:
        return now < self.driven_until

    @property
    def is_waited_for(self) -> bool:
        """Whether its Job was created, and its driver was not heard of yet."""
        return self.driver.startswith("job::")

    @property
    def is_asked_to_stop(self) -> bool:
        return STOP in self.metadata.annotations

    @property
    def owner(self) -> Manifest:
        """The sweep as the owner of its trials."""
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self.metadata.uid}


def _unpacked(packed: bytes) -> bytes:
    """Unpack a state up to a limit: a ConfigMap may unpack to a gigabyte, which readers must not have to keep."""
    unpacking = zlib.decompressobj(wbits=31)
    unpacked = unpacking.decompress(packed, LARGEST_STATE)
    if not unpacking.eof:
        raise ValueError("it is cut off, or too large")
    return unpacked


VIEWS = Kind(SweepObject)


# --- read


def read(client: SyncClient, namespace: str, name: str) -> SweepObject | None:
    """The sweep of this name; None: there is none."""
    try:
        sweep = client.send(requests.get(requests.CONFIG_MAPS.path(namespace, name)), VIEWS.one)
    except NotFound:
        return None
    return sweep if SWEEP in sweep.metadata.labels else None


def read_again(client: SyncClient, sweep: SweepObject) -> SweepObject:
    """The sweep as it is now. Raises NoSuchJob if it was deleted, even if there is a new one of its name."""
    now = read(client, sweep.namespace, sweep.name)
    if now is None or now.metadata.uid != sweep.metadata.uid:
        raise NoSuchJob(f"the sweep {sweep.name} was deleted")
    return now


def listed(client: SyncClient, namespace: str, selector: str = "") -> list[SweepObject]:
    """Sweeps of a namespace, or of all, with these labels."""
    answers = sync_lists.pages(client, requests.CONFIG_MAPS.path(namespace), query(selector))
    return [sweep for answer in answers for sweep in decode(VIEWS.page, answer).items or []]


def query(selector: str) -> dict[str, str]:
    return {"labelSelector": ",".join(filter(None, (SWEEP, selector)))}


def job_document(sweep: SweepObject) -> "Document":
    """The TFJob of all trials, with the names of the parameters in braces."""
    from tfyard import formats  # 40 ms, which a list does not need

    (document,) = formats.read(sweep.data[JOB].encode())
    return document


# --- written


def manifest(state: SweepState, namespace: str, job: str, labels: dict[str, str]) -> Manifest:
    """The ConfigMap of a new sweep. `job`: its TFJob, with the names of the parameters in braces."""
    name = state.spec.name
    metadata = {"name": name, "namespace": namespace, "labels": {**labels, SWEEP: name}}
    whole = _with_state(state)
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return {**head, **whole, "data": {**whole["data"], JOB: job}}


def _with_state(state: SweepState) -> Manifest:
    packed = gzip.compress(msgspec.json.encode(state), 6, mtime=0)
    return {
        "data": {SUMMARY: sweep_text.progress(state)},
        "binaryData": {STATE: base64.b64encode(packed).decode()},
    }


def driver_name(kind: DriverKind, where: str = "") -> str:
    """The name of a process. `where`: its host; empty: the Job that will drive it has not begun."""
    return f"{kind}:{where}:{random.getrandbits(48):012x}"


def here(kind: DriverKind) -> str:
    """The name of this process."""
    return driver_name(kind, socket.gethostname())


def driven(driver: str, now: datetime) -> dict[str, str | None]:
    """Annotations of a sweep that this driver drives."""
    kind: DriverKind = "job" if driver.startswith("job") else "command"
    return {DRIVER: driver, DRIVEN_UNTIL: timestamp(now + SILENCE[kind])}


def patched(
    client: SyncClient,
    sweep: SweepObject,
    annotations: dict[str, str | None],
    state: SweepState | None = None,
) -> SweepObject:
    """The sweep with these annotations and this state. Raises Conflict if it has changed since it was read."""
    metadata = {"resourceVersion": sweep.metadata.resource_version, "annotations": annotations}
    body = {"metadata": metadata, **(_with_state(state) if state else {})}
    try:
        return client.send(requests.patch(sweep.path, body), VIEWS.one)
    except NotFound:
        raise NoSuchJob(f"the sweep {sweep.name} was deleted") from None


def driver_text(driver: str) -> str:
    """A driver in words."""
    kind, _, rest = driver.partition(":")
    where = rest.rpartition(":")[0]
    if kind == "job":
        return f"the pod {where}" if where else "a Job that has not begun"
    return f"a command on {where}"
