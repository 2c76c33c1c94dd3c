"""A workload's document -> Workload: the task (or, with several pods, the tasks) that it runs."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.pods import checks, templates
from tfyard.formats.yaml.source import Document, locate
from tfyard.model import DEFAULT_PORT, TENSORFLOW_CONTAINER, Code, Manifest, Problem

from . import commands, identity, kinds, peers, rendered

TEMPLATE: Path = ("spec", "template")
SPEC: Path = (*TEMPLATE, "spec")


class Workload(Struct, frozen=True, kw_only=True):
    """An object of the input that runs one or several tasks of the same role."""

    document: Document
    kind: str
    name: str
    namespace: str
    role: str | None
    index: int
    """Index of the first pod."""
    size: int
    policy: kinds.Policy
    template: Manifest
    port: int
    code: Code | None
    hosts: peers.Hosts
    is_alone: bool = False
    """No role is known, so the workload becomes a separate job."""
    problems: tuple[Problem, ...] = ()
    said: tuple[str, ...] = ()

    @property
    def indexes(self) -> range:
        return range(self.index, self.index + self.size)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the pods."""
        return dict((self.template.get("metadata") or {}).get("labels") or {})

    @property
    def stem(self) -> str:
        """The workload's name without role and index."""
        named = identity.of_name(self.name)
        return named.stem if named else self.name

    @property
    def is_endless(self) -> bool:
        """Whether the pods were restarted even after success."""
        return self.kind != kinds.JOB


def read(
    document: Document, maps: Mapping[str, dict[str, str]]
) -> tuple[list[Workload], tuple[Problem, ...]]:
    """The workload, unless the document is too malformed for one, and all problems. A Job of `tfyard render` may
    be several workloads."""
    notes = Notes()
    data: Manifest = _without_nulls(document.data)
    name, namespace = _metadata(data, notes)
    parts = rendered.workloads(data, name) if _template(data, notes) else []
    meta = {"document": document, "namespace": namespace}
    workloads = [_read(meta, part, own, maps, notes) for own, part in parts]
    problems = locate(notes.problems, document)
    return [replace(workload, problems=problems) for workload in workloads], problems


def _read(
    meta: Mapping[str, Any], data: Manifest, name: str, maps: Mapping[str, dict[str, str]], notes: Notes
) -> Workload:
    spec, kind, template = data["spec"], data["kind"], data["spec"]["template"]
    kinds.check_claims(spec, notes)
    position = _main(template["spec"]["containers"])
    container = template["spec"]["containers"][position]
    task = identity.identify(name, template, container, commands.words(container))
    remarks: list[str] = []
    program = commands.modern(_indexed(container, spec), remarks.append)
    built = _with_container(template, position, program.container)
    _say_left_out(data, name, task, remarks)
    _say_ports(container, remarks)
    return Workload(
        **meta,
        kind=kind,
        name=name,
        role=task.role,
        index=task.index,
        size=kinds.size(kind, spec, notes),
        policy=kinds.policy(kind, spec, notes),
        template=templates.load(built, TEMPLATE, notes),
        port=_port(container),
        code=program.code,
        hosts=peers.listed(container, maps),
        said=tuple(remarks),
    )


def _metadata(data: Manifest, notes: Notes) -> tuple[str, str]:
    """Name and namespace. A Job may have a prefix instead of a name."""
    raw = data.get("metadata")
    problems = checks.unknown_fields(raw, ("metadata",), "ObjectMeta")
    notes.extend(problems)
    raw = raw if isinstance(raw, dict) and not problems else {}
    name = raw.get("name") or str(raw.get("generateName") or "").rstrip("-")
    if not name and not problems:
        notes.error(("metadata", "name"), "must be given", "give the workload a name")
    return name, raw.get("namespace") or "default"


def _template(data: Manifest, notes: Notes) -> Manifest | None:
    """The pod template, if its types are right and the container that trains is known."""
    spec = data.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        notes.error(TEMPLATE, "must be given", f"add the pod template of the {data['kind']}")
        return None
    problems = [p for p in checks.unknown_fields(template, TEMPLATE) if p.severity == "error"]
    notes.extend(problems)
    containers = [] if problems else (template.get("spec") or {}).get("containers") or []
    if not problems and (not containers or _main(containers) < 0):
        fix = f"name the one that trains {TENSORFLOW_CONTAINER}" if containers else "add it, with its image"
        notes.error((*SPEC, "containers"), "must have one container that trains", fix)
    return template if containers and _main(containers) >= 0 else None


def _main(containers: list[Manifest]) -> int:
    """Position of the container that trains; -1 if it is not known."""
    names = [container["name"] for container in containers]
    if len(names) == 1:
        return 0
    return names.index(TENSORFLOW_CONTAINER) if TENSORFLOW_CONTAINER in names else -1


def _indexed(container: Manifest, spec: Manifest) -> Manifest:
    if spec.get("completionMode") != "Indexed":
        return container
    env = [
        entry for entry in container.get("env") or [] if entry["name"] != commands.COMPLETION_INDEX["name"]
    ]
    return {**container, "env": [*env, commands.COMPLETION_INDEX]}


def _with_container(template: Manifest, position: int, container: Manifest) -> Manifest:
    """The template with this container, and without a restart policy, because the role's policy is used."""
    spec = {key: value for key, value in template["spec"].items() if key != "restartPolicy"}
    containers = [*spec["containers"][:position], container, *spec["containers"][position + 1 :]]
    metadata = {
        key: template["metadata"][key]
        for key in ("labels", "annotations")
        if key in (template.get("metadata") or {})
    }
    return {**({"metadata": metadata} if metadata else {}), "spec": {**spec, "containers": containers}}


def _port(container: Manifest) -> int:
    number = (container.get("ports") or [{}])[0].get("containerPort")
    return number if isinstance(number, int) and 0 < number < 65_536 else DEFAULT_PORT


def _say_left_out(data: Manifest, name: str, task: identity.Identity, remarks: list[str]) -> None:
    kind = data["kind"]
    if task.role and task.reason:
        remarks.append(f"{kind} {name} is taken for {task.role.lower()} {task.index}, {task.reason}")
    if fields := kinds.left_out(data["spec"]):
        remarks.append(f"{', '.join(fields)} of {kind} {name} left out: a TFJob has nothing like it")


def _say_ports(container: Manifest, remarks: list[str]) -> None:
    others = [str(port.get("containerPort")) for port in (container.get("ports") or [])[1:]]
    if others:
        remarks.append(f"further ports removed: {', '.join(others)}; a task has one port")


def _without_nulls(value: Any) -> Any:
    """null means "not set" everywhere in Kubernetes."""
    if isinstance(value, dict):
        return {key: _without_nulls(part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value
