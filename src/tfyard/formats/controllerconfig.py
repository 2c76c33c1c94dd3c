"""The operator's config file: the format of tensorflow/k8s (2017) with fields that tfyard adds.

The old operator read it with Go's JSON decoder, which ignores the letter case of field names; such files must
still work. A misspelt field, which the old operator ignored silently, is a problem here.
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from tfyard.errors import Invalid
from tfyard.model import Dialect, Problem
from tfyard.model.names import DNS_LABEL

from .declarations.reading import Notes, Path, read
from .declarations.structs import fields, type_of
from .yaml import source

T = TypeVar("T")


class DriverVolume(Struct, frozen=True, rename="camel"):
    """A file or directory on the node that a container needs to use the device."""

    name: Annotated[str, Meta(description="Name of the volume in the pod.")]
    host_path: Annotated[str, Meta(description="Path on the node.")]
    mount_path: Annotated[str, Meta(description="Mount path in the container.")]


class DriverVariable(Struct, frozen=True):
    """An environment variable that a container needs to use the device."""

    name: Annotated[str, Meta(description="Name of the variable.")]
    value: Annotated[str, Meta(description="Value of the variable.")] = ""


class AcceleratorConfig(Struct, frozen=True, rename="camel"):
    """Volumes and variables for containers that request this device, on nodes without a device plugin."""

    volumes: Annotated[list[DriverVolume], Meta(description="Files and directories on the node.")] = []
    env_vars: Annotated[list[DriverVariable], Meta(description="Environment variables.")] = []


class OperatorConfig(Struct, frozen=True, rename="camel", kw_only=True):
    """Settings for all jobs of a cluster."""

    accelerators: Annotated[
        dict[str, AcceleratorConfig],
        Meta(description="Volumes and environment variables by resource, such as nvidia.com/gpu."),
    ] = {}
    grpc_server_file_path: Annotated[
        str,
        Meta(description="Program of a PS without a template; default: tfyard's own parameter server."),
    ] = ""
    tf_image: Annotated[
        str,
        Meta(
            description="Image of a PS without a template and of TensorBoard, unless psImage or tensorboardImage "
            "is set."
        ),
    ] = ""
    ps_image: Annotated[str, Meta(description="Image of a PS without a template.")] = ""
    ps_command: Annotated[list[str], Meta(description="Command of a PS without a template.")] = []
    tensorboard_image: Annotated[str, Meta(description="Image of TensorBoard.")] = ""
    cluster_domain: Annotated[
        str, Meta(description="Domain at the end of addresses, such as cluster.local; default: none.")
    ] = ""
    services: Annotated[
        Literal["shared", "per-replica"],
        Meta(description="One headless Service per job (shared, the default), or one per replica."),
    ] = "shared"
    dialect: Annotated[
        Dialect | None,
        Meta(description="Form of TF_CONFIG for every job; default: that of the job's version."),
    ] = None


def load(text: str | bytes, name: str = "<config>") -> OperatorConfig:
    """The config, or `Invalid` with every problem and its position. An empty file means all defaults."""
    documents = source.read(text, name)
    if not documents:
        return OperatorConfig()
    document, *more = documents
    notes = Notes()
    if more:
        notes.error((), "must be one document", "remove everything after ---")
    folded = _folded(OperatorConfig, document.data, (), notes)
    config = read(OperatorConfig, folded, (), notes)
    if config is not None:
        _check(config, folded, notes)
    if notes.problems or config is None:
        raise Invalid(source.locate([_as_written(p, document.data) for p in notes.problems], document))
    return config


# --- names of fields in any letter case


def _folded(annotation: Any, value: Any, path: Path, notes: Notes) -> Any:
    """The value with field names in the declared letter case. Keys that users choose stay as they are."""
    expected = type_of(annotation)
    if expected.kind is dict and isinstance(value, dict):
        return {key: _folded(expected.args[0], part, (*path, key), notes) for key, part in value.items()}
    if expected.kind is list and isinstance(value, list):
        return [_folded(expected.args[0], part, (*path, i), notes) for i, part in enumerate(value)]
    if expected.kind is Struct and isinstance(value, dict):
        return _folded_fields(expected.args[0], value, path, notes)
    return value


def _folded_fields(cls: type[Struct], value: dict[str, Any], path: Path, notes: Notes) -> dict[str, Any]:
    declared = {key.lower(): (key, field.annotation) for key, field in fields(cls).items()}
    folded: dict[str, Any] = {}
    for key, part in value.items():
        name, annotation = declared.get(key.lower(), (key, object))
        if name in folded:
            notes.error((*path, key), f"{name} is given twice", "keep one of the two")
        folded[name] = _folded(annotation, part, (*path, key), notes)
    return folded


def _as_written(problem: Problem, data: Any) -> Problem:
    """The problem with its path in the letter case of the file, by which its position is found."""
    path: list[str | int] = []
    for step in problem.path:
        if isinstance(data, dict) and step not in data:
            step = next((key for key in data if key.lower() == str(step).lower()), step)
        path.append(step)
        data = _below(data, step)
    return Problem(tuple(path), problem.message, problem.fix, problem.value, problem.severity)


def _below(data: Any, step: str | int) -> Any:
    try:
        return data[step]
    except (KeyError, IndexError, TypeError):
        return None


# --- rules that no single field can check


def _check(config: OperatorConfig, folded: Any, notes: Notes) -> None:
    domain = config.cluster_domain
    if domain and not all(DNS_LABEL.fullmatch(part) for part in domain.split(".")):
        fix = f"write {domain.strip('.')}" if domain != domain.strip(".") else "for example cluster.local"
        notes.error(("clusterDomain",), "must be a DNS domain", fix, domain)
    for resource in config.accelerators:
        path: Path = ("accelerators", resource)
        notes.extend(_volume_problems(_each(DriverVolume, folded, (*path, "volumes"))))
        notes.extend(_variable_problems(_each(DriverVariable, folded, (*path, "envVars"))))


def _each(cls: type[T], data: Any, path: Path) -> Iterator[tuple[Path, T]]:
    """The valid entries of a list, each with its index in the file: reading a list drops invalid entries."""
    for step in path:
        data = _below(data, step)
    for i, entry in enumerate(data if isinstance(data, list) else ()):
        item = read(cls, entry, (*path, i), Notes())
        if item is not None:
            yield (*path, i), item


def _volume_problems(volumes: Iterator[tuple[Path, DriverVolume]]) -> Iterator[Problem]:
    """Problems of volumes for which the API server would reject every pod that requests the device."""
    names: set[str] = set()
    targets: set[str] = set()
    for at, volume in volumes:
        if not DNS_LABEL.fullmatch(volume.name):
            fix = "use lower-case letters, digits and '-'"
            yield Problem((*at, "name"), "must be a DNS label", fix, volume.name)
        if volume.name in names:
            yield Problem(
                (*at, "name"), f"{volume.name} is given twice", "name each volume once", volume.name
            )
        for key, value in (("hostPath", volume.host_path), ("mountPath", volume.mount_path)):
            if not value.startswith("/"):
                yield Problem((*at, key), "must be an absolute path", f"/{value}", value)
        if volume.mount_path in targets:
            text = "must be unique: another volume is mounted there"
            yield Problem((*at, "mountPath"), text, "choose another path", volume.mount_path)
        names.add(volume.name)
        targets.add(volume.mount_path)


def _variable_problems(variables: Iterator[tuple[Path, DriverVariable]]) -> Iterator[Problem]:
    for at, variable in variables:
        if not variable.name or "=" in variable.name:
            fix = "for example LD_LIBRARY_PATH"
            yield Problem((*at, "name"), "must be the name of an environment variable", fix, variable.name)
