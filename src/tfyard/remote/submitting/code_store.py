"""The code of a submitted job: where it goes, whether it is there already, and what is no longer used.

Code is kept under the hash of its names, modes and contents: as an immutable ConfigMap if it is small, else as a
folder of a claim. So nothing is sent twice, and no job changes because newer code is sent.
"""

import asyncio
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from tfyard.errors import TfyardError, Usage
from tfyard.extras import needs
from tfyard.file_trees import Copied
from tfyard.file_trees import CopyProgress as FileProgress
from tfyard.job_input import code_folder
from tfyard.job_input.code_folder import CodeFolder
from tfyard.kube import Access, Forbidden, NotFound, requests
from tfyard.kube.sync import SyncClient
from tfyard.model import Code, Job, Manifest
from tfyard.model import names as label
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.submitting import code_claim, code_lookup
from tfyard.remote.submitting.code_plan import CodeOptions, Plan, Progress, summary_lines
from tfyard.render import code as rendering

__all__ = ["CodeOptions", "Plan", "Progress", "fetch", "plan", "prune", "summary_lines", "upload"]

MAX_PACKED = 900 << 10
"""Bytes in a ConfigMap: etcd refuses requests of 1.5 MiB, and base64 adds a third."""


def plan(client: SyncClient, job: Job, base: Path, options: CodeOptions | None = None) -> Plan:
    """Reads the folder and asks the cluster; writes nothing. `base`: the folder of the job file."""
    code = job.code
    if code is None or code.kind != "folder":
        return Plan(job=job)
    options = options or CodeOptions()
    read = _read(job, code_folder.of_code(code, base, options.leave_out))
    made = None if code.claim else _as_config_map(client, read, code)
    if made is None:
        made = code_claim.plan(client, read, code, options)
    annotations = {**job.annotations, label.CODE: made.hash}
    return replace(made, job=replace(made.job, code=None, annotations=annotations))


async def upload(
    access: Access, plan: Plan, say: Callable[[str], None], progress: Progress | None = None
) -> None:
    """Sends the code to its claim, if it is not there. The objects of the plan must exist."""
    if plan.kind != "claim":
        return
    if not plan.is_present:
        with needs("kubernetes", "sending code to a claim"):
            from tfyard.remote.submitting import code_transfer
        plan = await code_transfer.send(access, plan, say, progress or (lambda _, __: None))
    await asyncio.to_thread(code_claim.note_sent, access, plan)


async def fetch(
    access: Access, tfjob: StoredTFJob, to: Path, progress: FileProgress, image: str = ""
) -> Copied:
    """The code of a job becomes the folder `to`. `image`: of the pod that reads from a claim."""
    where = code_lookup.location(tfjob)
    code_lookup.require(where, tfjob.name)
    if where.kind == "config-map":
        return await asyncio.to_thread(code_lookup.copy, access, tfjob, to)
    with needs("kubernetes", "copying code from a claim"):
        from tfyard.remote.submitting import code_transfer
    return await code_transfer.fetch(access, tfjob, where, (to, image), progress)


def prune(client: SyncClient, namespace: str, keep: Collection[str] = ()) -> list[str]:
    """Deletes ConfigMaps with code that no TFJob refers to, older than a day; their names. Code on a claim is
    deleted by the next upload. `keep`: hashes."""
    listing = requests.get(requests.CONFIG_MAPS.path(namespace), {"labelSelector": label.CODE})
    stored = [each["metadata"] for each in client.send(listing)["items"]]
    old = [each for each in stored if _age(each) > code_claim.KEPT]
    used = {*keep, *(code_claim.used(client, namespace) if old else ())}
    unused = [each for each in old if used.isdisjoint({each["labels"][label.CODE], each["name"]})]
    for each in unused:
        path = requests.CONFIG_MAPS.path(namespace, each["name"])
        client.send(requests.delete(path, uid=each["uid"]))
    return [str(each["name"]) for each in unused]


def _age(metadata: Manifest) -> timedelta:
    return datetime.now(UTC) - datetime.fromisoformat(metadata["creationTimestamp"])


def _read(job: Job, folder: CodeFolder) -> Plan:
    if not folder.files:
        raise Usage(
            f"code: {folder.path} has no files, or .gitignore and .tfyardignore leave out all of them"
        )
    sums = code_folder.sums(folder)
    return Plan(
        job=job,
        hash=code_folder.digest(folder, sums),
        files=len(folder.files),
        size=folder.size,
        largest=tuple((file.path, file.size) for file in folder.largest(5)),
        folder=folder,
        sums=tuple(sums),
    )


def _as_config_map(client: SyncClient, plan: Plan, code: Code) -> Plan | None:
    """Plan for code in a ConfigMap; None: the code is too large."""
    if plan.folder is None or plan.size > code_folder.MAX_READ:
        return None
    metadata = {
        "name": f"tfyard-code-{plan.hash[:12]}",
        "namespace": plan.job.namespace,
        "labels": {label.CODE: plan.hash},
    }
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True}
    config_map = rendering.config_map_with(code_folder.load(plan.folder), head, MAX_PACKED)
    if rendering.size_of(config_map) > MAX_PACKED:
        return None
    is_present = _is_present(client, config_map)
    return replace(
        plan,
        job=rendering.in_config_map(plan.job, code, config_map),
        kind="config-map",
        holder=metadata["name"],
        is_present=is_present,
        objects=() if is_present else (config_map,),
    )


def _is_present(client: SyncClient, config_map: Manifest) -> bool:
    metadata = config_map["metadata"]
    try:
        stored = client.send(requests.get(requests.CONFIG_MAPS.path(metadata["namespace"], metadata["name"])))
    except (NotFound, Forbidden):
        return False
    if (stored["metadata"].get("labels") or {}).get(label.CODE) != metadata["labels"][label.CODE]:
        raise TfyardError(f"the ConfigMap {metadata['name']} has other content; delete it, and submit again")
    return True
