"""What changes when workloads become a job, in words; and what of their pods is kept."""

from collections.abc import Callable, Sequence

from tfyard.formats.yaml.source import Document
from tfyard.model import CHIEF, MASTER, PS, WORKER, Manifest, tensorflow_container

from . import commands, identity, peers
from .task import Workload

Say = Callable[[str], None]
_GENERATED = ("controller-uid", "job-name", "pod-template-hash", "controller-revision-hash")
_GENERATED_PREFIXES = ("batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/")
"""Labels that Kubernetes' controllers write into the templates and pods of their own."""


def say_policy(group: list[Workload], say: Say) -> None:
    """How tasks are restarted, and when the job ends."""
    if endless := sorted({f"{one.kind}s" for one in group if one.is_endless}):
        text = "a task is restarted when it fails"
        say(f"{text}; {' and '.join(endless)} restarted every task that ended")
    if len(group) > 1 or endless:
        servers = "; parameter servers are stopped then" if any(one.role == PS for one in group) else ""
        say(f"the job ends when {_leader(group)}{servers}")
    limited = [one.policy.retries for one in group if one.policy.retries]
    if limited and len(limited) < len(group) and endless:
        say("backoffLimit left out: a job has one limit for all tasks, and some had none")
    namespaces = sorted({one.namespace for one in group})
    if len(namespaces) > 1:
        say(f"namespaces {', '.join(namespaces)}: a job has only one; {namespaces[0]} is used")


def _leader(group: list[Workload]) -> str:
    if any(one.role in (CHIEF, MASTER) for one in group):
        return "the chief ends"
    return "all workers have ended" if ends_with_all_workers(group) else "worker 0 ends"


def ends_with_all_workers(group: list[Workload]) -> bool:
    """A batch Job has ended when each of its pods has."""
    workers = [one for one in group if one.role == WORKER]
    has_chief = any(one.role in (CHIEF, MASTER) for one in group)
    several = sum(one.size for one in workers) > 1
    return several and not has_chief and not any(one.is_endless for one in workers)


def is_tensorboard(one: Workload) -> bool:
    """It stands beside many clusters, and is no task of them."""
    words = commands.words(tensorflow_container(one.template))
    return one.role is None and (
        (bool(words) and words[0].endswith("tensorboard")) or "tensorboard" in one.name
    )


def others(found: list[Workload], documents: Sequence[Document]) -> list[str]:
    """The objects that do not become part of a job, as in `Secret registry`."""
    used = {id(one.document.data) for one in found}
    unselected = {id(one) for one in peers.unselected(documents, [one.labels for one in found])}
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
    """The labels by which workloads and Services find pods."""
    specs = [document.data.get("spec") for document in documents if isinstance(document.data, dict)]
    selectors = [spec.get("selector") for spec in specs if isinstance(spec, dict)]
    parts = [one.get("matchLabels", one) for one in selectors if isinstance(one, dict)]
    return {str(label) for part in parts if isinstance(part, dict) for label in part}


def common_metadata(tasks: list[Workload], selected: set[str], say: Say) -> Manifest:
    """Labels and annotations that all tasks of a role have. Those by which they were found and told apart are
    created by tfyard."""
    found: Manifest = {}
    for key in ("labels", "annotations"):
        parts = [dict((one.template.get("metadata") or {}).get(key) or {}) for one in tasks]
        kept = {name: text for name, text in parts[0].items() if all(p.get(name) == text for p in parts)}
        known = selected | identity.IDENTITY_LABELS if key == "labels" else set()
        if lost := sorted({name for part in parts for name in part} - set(kept) - known - _generated(parts)):
            say(f"{key} of the pods removed, because they differ: {', '.join(lost)}")
        kept = {name: text for name, text in kept.items() if name not in known | _generated(parts)}
        found |= {key: kept} if kept else {}
    return found


def _generated(parts: list[dict[str, str]]) -> set[str]:
    return {
        name for part in parts for name in part if name in _GENERATED or name.startswith(_GENERATED_PREFIXES)
    }
