"""Code on a claim: which claim, which code is there by its annotations, and what that means for the job's pods."""

from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Usage
from tfyard.job_input import code_folder
from tfyard.kube import Access, Forbidden, requests
from tfyard.kube.requests import TFJOBS
from tfyard.kube.sync import SyncClient
from tfyard.model import Code, Job, Manifest
from tfyard.model import names as label
from tfyard.overview.storage_classes import MANY, choose
from tfyard.remote.reading import jobs
from tfyard.remote.reading.jobs import StoredTFJob
from tfyard.remote.reading.views import list_pods
from tfyard.remote.submitting import code_lookup
from tfyard.remote.submitting.code_lookup import KEPT_NAME
from tfyard.remote.submitting.code_plan import CodeOptions, Plan
from tfyard.remote.sweeps import store
from tfyard.render import code as rendering
from tfyard.views.objects import StorageClass

CLAIM = "tfyard-code"
"""The claim of a namespace, where the job file names none."""
KEPT = timedelta(days=1)
"""How long code stays on the claim that no job refers to."""

GOING_ON = {"fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"}
"""Selects pods that have not ended."""
_REQUIRED, _NODE = "requiredDuringSchedulingIgnoredDuringExecution", "kubernetes.io/hostname"


class Classes(Struct, frozen=True):
    items: tuple[StorageClass, ...] = ()


_classes = msgspec.json.Decoder(Classes)


class StoredCode(Struct, frozen=True, omit_defaults=True):
    """Code on a claim, or a layer of packages, as an annotation of the claim says it."""

    at: datetime
    """Time of its last submission."""
    files: int = 0
    size: int = 0


def plan(client: SyncClient, read: Plan, code: Code, options: CodeOptions) -> Plan:
    """Plan for code on a claim. `read`: the plan with the facts about the folder."""
    namespace, name = read.job.namespace, code.claim or CLAIM
    present = client.find(requests.CLAIMS.path(namespace, name))
    claim = present or _new(client, read.job, code, options)
    if "ReadWriteOncePod" in (claim["spec"].get("accessModes") or []):
        raise Usage(f"code: only one pod can mount the claim {name} (ReadWriteOncePod); name another one")
    job = rendering.on_claim(read.job, code, (name, read.hash), _requirements(read, code))
    sent, is_shared = sent_to(claim), _can_share(claim)
    uses = code_lookup.kept_on_claims(role.template for role in job.roles)
    return replace(
        read,
        job=job if is_shared else _together(job, name),
        kind="claim",
        holder=name,
        is_present=read.hash in sent,
        objects=() if present else (claim,),
        notes=(
            *([] if present else [_creation_notice(claim)]),
            *([] if is_shared else [_ONE_NODE.format(name)]),
        ),
        layers=tuple(sorted(uses - {read.hash})),
        outdated=_outdated(client, namespace, old_of(sent) - uses),
        node="" if is_shared or not present else _node_of(client, namespace, name),
        helper_image=options.helper_image,
    )


def note_sent(access: Access, plan: Plan) -> None:
    """Annotates the claim, so that the next submission knows its content without a pod."""
    deleted = () if plan.is_present else plan.outdated  # by the upload
    sent = dict[str, StoredCode | None].fromkeys(deleted)
    sent |= {
        plan.hash: StoredCode(_now(), plan.files, plan.size),
        **{each: StoredCode(_now()) for each in plan.layers},
    }
    annotations = {
        _key(name): msgspec.json.encode(each).decode() if each else None for name, each in sent.items()
    }
    path = requests.CLAIMS.path(plan.job.namespace, plan.holder)
    with SyncClient(access) as client:
        try:
            client.send(requests.patch(path, {"metadata": {"annotations": annotations}}))
        except Forbidden:
            return  # it is sent again the next time


def used(client: SyncClient, namespace: str) -> set[str]:
    """Hashes and names of ConfigMaps that TFJobs refer to, by their annotation or, without it, by their pods; and
    sweeps, whose trials may all be still to come."""
    sweeps = (StoredTFJob(TFJOBS, store.job_document(each).data) for each in store.listed(client, namespace))
    tfjobs = [*jobs.manifests(client, jobs.Scope(namespace)), *sweeps]
    locations = [code_lookup.location(each) for each in tfjobs]
    on_claims = code_lookup.kept_on_claims(
        each for job in tfjobs for each in code_lookup.templates(job.manifest)
    )
    return {*on_claims, *(name for each in locations for name in (each.hash, each.name))}


_ONE_NODE = (
    "code: the claim {} can be used by one node at a time (ReadWriteOnce), so all tasks run on one node;"
    " `code: {{from: ., claim: NAME}}` names a claim that is ReadWriteMany"
)


def _creation_notice(claim: Manifest) -> str:
    spec = claim["spec"]
    chosen = spec.get("storageClassName")
    of = f"of the storage class {chosen}" if chosen else "of the default storage class"
    amount = spec["resources"]["requests"]["storage"]
    return f"code: the claim {claim['metadata']['name']} is created: {amount}, {spec['accessModes'][0]}, {of}"


def _new(client: SyncClient, job: Job, code: Code, options: CodeOptions) -> Manifest:
    """Claim that is created with the job, or tfyard's own."""
    if not code.claim:
        return _ours(client, job.namespace, options.claim_size)
    with_job = [each for each in job.objects if each["metadata"]["name"] == code.claim]
    if not with_job:
        fix = "create it, or leave `claim` out: then tfyard creates one"
        raise Usage(f"code: there is no claim {code.claim} in the namespace {job.namespace}; {fix}")
    return with_job[0]


def _ours(client: SyncClient, namespace: str, size: str) -> Manifest:
    """Claim for many nodes if a storage class offers that, else for one node, of the default class; also where the
    user may not list storage classes."""
    try:
        classes = client.send(requests.get(requests.STORAGE_CLASSES.path()), _classes).items
    except Forbidden:
        classes = ()
    chosen, access = choose(classes)
    spec: Manifest = {"accessModes": [access], "resources": {"requests": {"storage": size}}}
    spec |= {"storageClassName": chosen} if chosen else {}
    metadata = {"name": CLAIM, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _can_share(claim: Manifest) -> bool:
    """Whether pods of several nodes can mount it."""
    return bool({MANY, "ReadOnlyMany"} & {*(claim["spec"].get("accessModes") or [])})


def _requirements(read: Plan, code: Code) -> bytes:
    """Content of the requirements file, if one is named."""
    files = read.folder.files if read.folder else ()
    named = [file for file in files if file.path == code.requirements.removeprefix("./")]
    return b"".join(part for file in named for part in code_folder.contents(file))


def _together(job: Job, claim: str) -> Job:
    """Job whose pods all run on one node, since they mount the claim."""
    if job.size > 1 and any(_is_spread(role.template) for role in job.roles):
        text = f"the claim {claim} can be used by one node at a time, and `spread: require` asks for several"
        raise Usage(f"code: {text}; name a claim that is ReadWriteMany, or remove `spread`")
    mark = {label.CODE_CLAIM: claim}
    term = {"labelSelector": {"matchLabels": mark}, "topologyKey": _NODE}

    def change(template: Manifest) -> Manifest:
        metadata, spec = template.get("metadata") or {}, template["spec"]
        affinity = spec.get("affinity") or {}
        near = affinity.get("podAffinity") or {}
        near = {**near, _REQUIRED: [*(near.get(_REQUIRED) or []), term]}
        return {
            **template,
            "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **mark}},
            "spec": {**spec, "affinity": {**affinity, "podAffinity": near}},
        }

    return rendering.each_template(job, change)


def _is_spread(template: Manifest) -> bool:
    apart = (template["spec"].get("affinity") or {}).get("podAntiAffinity") or {}
    return any(term.get("topologyKey") == _NODE for term in apart.get(_REQUIRED) or [])


def sent_to(claim: Manifest) -> dict[str, StoredCode]:
    """Code by its hash, packages as `packages/NAME`. Annotations of other tools are ignored."""
    sent = {}
    for key, text in (claim["metadata"].get("annotations") or {}).items():
        name = key.removeprefix(label.CODE_SENT).replace(".", "/")
        if key.startswith(label.CODE_SENT) and KEPT_NAME.fullmatch(name):
            try:
                sent[name] = msgspec.json.decode(text, type=StoredCode)
            except msgspec.MsgspecError:
                continue
    return sent


def _key(name: str) -> str:
    """Key of the annotation, which can have only one slash."""
    return f"{label.CODE_SENT}{name.replace('/', '.')}"


def _outdated(client: SyncClient, namespace: str, old: set[str]) -> tuple[str, ...]:
    """Old code that neither jobs nor pods use; some pods outlive their job by a moment."""
    if not old:
        return ()
    try:
        running = [{"spec": msgspec.to_builtins(pod.spec)} for pod in list_pods(client, namespace, GOING_ON)]
        return tuple(sorted(old - used(client, namespace) - code_lookup.kept_on_claims(running)))
    except Forbidden:
        return ()  # a user who may not list what is used deletes nothing


def old_of(sent: dict[str, StoredCode]) -> set[str]:
    return {each for each, about in sent.items() if _now() - about.at > KEPT}


def _node_of(client: SyncClient, namespace: str, claim: str) -> str:
    """Node of a pod that mounts the claim; empty: there is none."""
    pods = list_pods(client, namespace, GOING_ON)
    return next((pod.spec.node_name for pod in pods if claim in pod.claims), "")


def _now() -> datetime:
    return datetime.now(UTC)
