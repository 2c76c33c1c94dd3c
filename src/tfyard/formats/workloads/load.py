"""Kubernetes' own workloads -> Jobs: a Job that trains alone, or a cluster with an object for each task.

Both styles of old clusters are converted: hosts in each command line, or in a ConfigMap; code by `curl` and
`unzip`, or from a volume. Tasks of a role may differ only in their index and node. Services and host lists are
dropped: tfyard creates its own.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tfyard.errors import Invalid
from tfyard.formats import limits, metadata
from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.pods import images
from tfyard.formats.tfjob.fields import in_order
from tfyard.formats.yaml.source import Document, locate
from tfyard.model import ROLES, WORKER, Job, Manifest, Problem, Role, RunPolicy

from . import changes, commands, identity, kinds, peers
from .task import SPEC, Workload, read

_ROLE_FIX = (
    "add --job_name=ps (or worker), or the label role: ps; if it is no task of the cluster, leave it out"
)
_MISSING_FIX = "add them: `tfyard convert` takes several files; with --allow-missing it converts without them"


class Converted(Struct, kw_only=True):
    job: Job | None = None
    problems: list[tuple[Document, Problem]] = []
    said: list[str] = []
    """Remarks about changes and guesses."""
    missing: list[peers.MissingPeer] = []
    kept: list[str] = []
    """The other objects of the input, such as `Secret registry`: they stay necessary, unchanged."""

    def say(self, sentence: str) -> None:
        sentence = " ".join(sentence.split())  # one line, because it becomes a comment
        if sentence not in self.said:
            self.said.append(sentence)

    def error(self, document: Document, path: Path, text: str, fix: str) -> None:
        self.problems += [(document, problem) for problem in locate([Problem(path, text, fix)], document)]

    @property
    def one(self) -> Job:
        """The job of a result without errors."""
        if self.job is None:
            raise Invalid([problem for _, problem in self.problems])
        return self.job

    @property
    def has_errors(self) -> bool:
        return any(problem.severity == "error" for _, problem in self.problems)


def load(
    documents: Sequence[Document], *, allow_missing: bool = False, uses_images: bool = True
) -> list[Converted]:
    """One result per cluster and per Job that trains alone; none if the input has no workload."""
    first = Converted()
    workloads = _read_all(documents, first, uses_images=uses_images)
    if first.has_errors or not workloads:
        return [first] if first.problems else []
    results = [first, *(Converted() for _ in _groups(workloads)[1:])]
    for result, group in zip(results, _groups(workloads), strict=True):
        _load_group(group, documents, result, allow_missing=allow_missing)
    first.kept = changes.others(workloads, documents)
    return results


def _read_all(documents: Sequence[Document], result: Converted, *, uses_images: bool) -> list[Workload]:
    """Every workload of the documents, with its role."""
    maps = peers.config_maps(documents)
    workloads: list[Workload] = []
    for document in documents:
        if kinds.is_workload(document.data):
            parts, problems = read(document, maps)
            problems = problems if uses_images else images.as_warnings(problems)
            result.problems += [(document, problem) for problem in problems]
            workloads += parts
    if not any(kinds.is_workload(document.data) for document in documents):
        _refuse_unreadable(documents, result)
    return _with_roles([workload for workload in workloads if not changes.is_tensorboard(workload)], result)


def _refuse_unreadable(documents: Sequence[Document], result: Converted) -> None:
    for document in documents:
        if kinds.is_unreadable(document.data):
            text, fix = kinds.UNREADABLE[document.data["kind"]]
            result.error(document, ("kind",), f"a {document.data['kind']} {text}", fix)


def _with_roles(workloads: list[Workload], result: Converted) -> list[Workload]:
    """A workload without a role becomes a separate job with one worker. Beside a cluster, this holds only for a
    batch Job, because no other kind ends by itself."""
    is_cluster = any(workload.role for workload in workloads)
    for workload in workloads:
        if workload.role is None and is_cluster and workload.is_endless:
            text = f"the role of {workload.kind} {workload.name} is unknown"
            result.error(workload.document, (*SPEC, "containers"), text, _ROLE_FIX)
    return [workload if workload.role else _alone(workload) for workload in workloads]


def _alone(workload: Workload) -> Workload:
    guess = f"{workload.kind} {workload.name} is taken for a worker: nothing in it names a role"
    return replace(workload, role=WORKER, index=0, is_alone=True, said=(guess, *workload.said))


def _groups(workloads: list[Workload]) -> list[list[Workload]]:
    """The workloads of each job. Tasks of one cluster list the same hosts; without lists, all workloads with a
    role are one cluster."""
    clusters: dict[frozenset[str], list[Workload]] = {}
    for workload in workloads:
        if not workload.is_alone:
            clusters.setdefault(_listed(workload), []).append(workload)
    unlisted = clusters.pop(frozenset(), [])
    groups = [*clusters.values()] or ([[]] if unlisted else [])
    for workload in unlisted:
        alike = [group for group in groups if workload.stem in {other.stem for other in group}]
        (alike or groups)[0].append(workload)
    return [*groups, *([workload] for workload in workloads if workload.is_alone)]


def _listed(workload: Workload) -> frozenset[str]:
    return frozenset(host for hosts in workload.hosts.values() for host in hosts or ())


def _load_group(
    group: list[Workload], documents: Sequence[Document], result: Converted, *, allow_missing: bool
) -> None:
    for workload in group:
        for sentence in workload.said:
            result.say(sentence)
    _check_peers(group, documents, result, allow_missing=allow_missing)
    selected = changes.selected_labels(documents)
    roles = {name: _role(name, _of(group, name), selected, result) for name in ROLES if _of(group, name)}
    _check_code(group, result)
    result.job = Job(
        name=_job_name(group, result),
        namespace=sorted({workload.namespace for workload in group})[0],
        roles=in_order(roles),
        run_policy=_run_policy(group),
        success="AllWorkers" if changes.ends_with_all_workers(group) else "",
        code=group[0].code,
    )
    changes.say_policy(group, result.say)
    _check_limits(result.job, group[0].document, result)


def _of(group: list[Workload], role: str) -> list[Workload]:
    return [workload for workload in group if workload.role == role]


def _check_peers(
    group: list[Workload], documents: Sequence[Document], result: Converted, *, allow_missing: bool
) -> None:
    present: dict[str, set[int]] = {}
    for workload in group:
        present.setdefault(str(workload.role), set()).update(workload.indexes)
    unselected = peers.unselected(documents, [workload.labels for workload in group])
    result.missing = peers.missing([workload.hosts for workload in group], present) or [
        peers.MissingPeer(named.role.lower(), peers.name_of(service))
        for service in unselected
        if (named := identity.of_name(peers.name_of(service))) and named.role not in present
    ]
    shown = ", ".join(map(str, result.missing))
    if shown and allow_missing:
        result.say(f"tasks that are not in the input are left out: {shown}")
    elif shown:
        text = f"tasks that belong to this one are not in the input: {shown}"
        result.error(group[0].document, (*SPEC, "containers"), text, _MISSING_FIX)


def _check_code(group: list[Workload], result: Converted) -> None:
    for workload in group:
        if workload.code != group[0].code:
            text = "fetches different code than the other tasks, but a job has only one code"
            result.error(
                workload.document,
                SPEC,
                text,
                "put the difference into the command, or the code into the image",
            )


def _job_name(group: list[Workload], result: Converted) -> str:
    """The common part of the workloads' names, such as tensorflow-ps-rc and tensorflow-worker0-rc."""
    stems = {workload.stem for workload in group}
    common = stems.pop() if len(stems) == 1 else _common_start([workload.name for workload in group])
    name = common if metadata.DNS_LABEL.fullmatch(common) else metadata.as_name(common, "training")
    if common and name != common:
        result.say(f"the job is called {name}: {common} cannot be part of host names")
    return name


def _common_start(names: list[str]) -> str:
    shortest = min(names, key=len)
    ends = (i for i in range(len(shortest)) if len({name[i] for name in names}) > 1)
    return shortest[: next(ends, len(shortest))].rstrip("-.")


def _run_policy(group: list[Workload]) -> RunPolicy:
    """A limit on restarts is kept only if every workload has one, because a job has one limit for all tasks."""
    policies = [policy.policy for policy in group]
    retries = [policy.retries for policy in policies if policy.retries is not None]
    return RunPolicy(
        clean="Running",
        backoff_limit=sum(retries) or None if len(retries) == len(group) else None,
        deadline=max((policy.deadline for policy in policies if policy.deadline is not None), default=None),
        ttl=max((policy.ttl for policy in policies if policy.ttl is not None), default=None),
        suspend=any(policy.suspend for policy in policies),
    )


def _role(name: str, tasks: list[Workload], selected: set[str], result: Converted) -> Role:
    tasks = sorted(tasks, key=lambda task: task.index)
    indexes = [index for task in tasks for index in task.indexes]
    has_gaps = result.missing and len(set(indexes)) == len(indexes)  # already reported
    if indexes != list(range(len(indexes))) and not has_gaps:
        text = f"the tasks of {name} have the indexes {', '.join(map(str, indexes))}"
        fix = f"number them 0 to {len(indexes) - 1} with --task_index"
        result.error(tasks[-1].document, SPEC, text, fix)
    ports = list(dict.fromkeys(task.port for task in tasks))
    if len(ports) > 1:
        result.say(f"ports {', '.join(map(str, ports))} of {name}: a role has only one; {ports[0]} is used")
    restarts = {task.policy.restart for task in tasks}
    return Role(
        name=name,
        replicas=len(indexes),
        restart=restarts.pop() if len(restarts) == 1 else "OnFailure",
        template=_common(name, tasks, selected, result),
        port=ports[0],
    )


def _common(name: str, tasks: list[Workload], selected: set[str], result: Converted) -> Manifest:
    """The template of all tasks of a role. Tasks may differ in their node, but in nothing else."""
    nodes = {task.template["spec"].get("nodeName") for task in tasks}
    specs = [_spec(task, with_node=len(nodes) == 1) for task in tasks]
    if any(spec != specs[0] for spec in specs):
        specs = [_numbered(task, spec) for task, spec in zip(tasks, specs, strict=True)]
    if len(nodes) > 1:
        result.say(
            f"nodeName of {name} removed: tasks had different nodes; `spread` keeps tasks on different nodes"
        )
    for task, spec in zip(tasks, specs, strict=True):
        if spec != specs[0]:
            text = f"{name} {task.index} differs from {name} 0 in more than index and node"
            result.error(task.document, SPEC, text, "make the pod templates equal")
    meta = changes.common_metadata(tasks, selected, result.say)
    return {**({"metadata": meta} if meta else {}), "spec": specs[0]}


def _spec(task: Workload, *, with_node: bool) -> Manifest:
    return {key: value for key, value in task.template["spec"].items() if with_node or key != "nodeName"}


def _numbered(task: Workload, spec: Manifest) -> Manifest:
    """The spec with a variable for the index, because programs often write files named after their task."""
    named = identity.of_name(task.name)
    if named is None or named.index is None:
        return spec
    containers = [commands.numbered(container, task.name, named.span) for container in spec["containers"]]
    return {**spec, "containers": containers}


def _check_limits(job: Job, document: Document, result: Converted) -> None:
    notes = Notes()
    paths: dict[str, Path] = dict.fromkeys(ROLES, ("spec",))
    limits.check(job, limits.FieldPaths(("metadata", "name"), (), paths, "replicas", ("spec",)), notes)
    result.problems += [(document, problem) for problem in locate(notes.problems, document)]
