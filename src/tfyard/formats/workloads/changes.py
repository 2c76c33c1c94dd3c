"""Remarks about what changes when workloads become a job, and the metadata of their pods that is kept."""

from collections.abc import Sequence

from tfyard.formats.yaml.source import Document
from tfyard.model import CHIEF, MASTER, PS, WORKER, Manifest, tensorflow_container
from tfyard.model.callbacks import Say

from . import commands, identity, peers
from .task import Workload

_GENERATED = ("controller-uid", "job-name", "pod-template-hash", "controller-revision-hash")
_GENERATED_PREFIXES = ("batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")
"""Labels that Kubernetes' controllers add to their templates and pods."""


def say_policy(group: list[Workload], say: Say) -> None:
    """Remarks on how tasks are restarted, and on when the job ends."""
    if endless := sorted({f"{workload.kind}s" for workload in group if workload.is_endless}):
        text = "a task is restarted when it fails"
        say(f"{text}; {' and '.join(endless)} restarted every task that ended")
    if len(group) > 1 or endless:
        has_servers = any(workload.role == PS for workload in group)
        servers = "; parameter servers are stopped then" if has_servers else ""
        say(f"the job ends when {_leader(group)}{servers}")
    limited = [workload.policy.retries for workload in group if workload.policy.retries]
    if limited and len(limited) < len(group) and endless:
        say("backoffLimit left out: a job has one limit for all tasks, and some had none")
    namespaces = sorted({workload.namespace for workload in group})
    if len(namespaces) > 1:
        say(f"namespaces {', '.join(namespaces)}: a job has only one; {namespaces[0]} is used")


def _leader(group: list[Workload]) -> str:
    if any(workload.role in (CHIEF, MASTER) for workload in group):
        return "the chief ends"
    return "all workers have ended" if ends_with_all_workers(group) else "worker 0 ends"


def ends_with_all_workers(group: list[Workload]) -> bool:
    """Whether the job ends when all workers have ended, as a batch Job does."""
    workers = [workload for workload in group if workload.role == WORKER]
    has_chief = any(workload.role in (CHIEF, MASTER) for workload in group)
    several = sum(workload.size for workload in workers) > 1
    is_led = any(workload.is_endless or workload.policy.is_led for workload in workers)
    return several and not has_chief and not is_led


def is_tensorboard(workload: Workload) -> bool:
    """Whether the workload is a TensorBoard, which many clusters have and which is not a task."""
    words = commands.words(tensorflow_container(workload.template))
    return workload.role is None and (
        (bool(words) and words[0].endswith("tensorboard")) or "tensorboard" in workload.name
    )


def others(workloads: list[Workload], documents: Sequence[Document]) -> list[str]:
    """Objects that do not become part of a job, such as `Secret registry`."""
    used = {id(workload.document.data) for workload in workloads}
    services = peers.unselected(documents, [workload.labels for workload in workloads])
    unselected = {id(service) for service in services}
    objects = [document.data for document in documents if isinstance(document.data, dict)]
    kept = [
        data
        for data in objects
        if id(data) not in used
        and not _is_host_list(data)
        and (data.get("kind") != "Service" or id(data) in unselected)
    ]
    return [f"{data.get('kind', 'an object')} {peers.name_of(data)}".strip() for data in kept]


def _is_host_list(data: Manifest) -> bool:
    entries = data.get("data")
    names = {*map(str, entries)} if isinstance(entries, dict) else {""}
    return data.get("kind") == "ConfigMap" and names <= {"ps", "worker", "clusterconfig"}


def selected_labels(documents: Sequence[Document]) -> set[str]:
    """Labels by which workloads and Services select pods."""
    specs = [document.data.get("spec") for document in documents if isinstance(document.data, dict)]
    selectors = [spec.get("selector") for spec in specs if isinstance(spec, dict)]
    parts = [selector.get("matchLabels", selector) for selector in selectors if isinstance(selector, dict)]
    return {str(label) for part in parts if isinstance(part, dict) for label in part}


def common_metadata(tasks: list[Workload], selected: set[str], say: Say) -> Manifest:
    """Labels and annotations that all tasks of a role have, without those that selected and numbered the pods, in
    place of which tfyard sets its own."""
    metadata: Manifest = {}
    for key in ("labels", "annotations"):
        parts = [dict((task.template.get("metadata") or {}).get(key) or {}) for task in tasks]
        kept = {name: text for name, text in parts[0].items() if all(p.get(name) == text for p in parts)}
        known = selected | identity.IDENTITY_LABELS if key == "labels" else set()
        if lost := sorted({name for part in parts for name in part} - set(kept) - known - _generated(parts)):
            say(f"{key} of the pods removed, because they differ: {', '.join(lost)}")
        kept = {name: text for name, text in kept.items() if name not in known | _generated(parts)}
        metadata |= {key: kept} if kept else {}
    return metadata


def _generated(parts: list[dict[str, str]]) -> set[str]:
    return {
        name for part in parts for name in part if name in _GENERATED or name.startswith(_GENERATED_PREFIXES)
    }
