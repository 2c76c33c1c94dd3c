"""Pod template -> words of a role. Each part that has a word is taken out of a copy of the template, and what is
left is exactly what the overlay must add, so nothing of a template is lost.
"""

from typing import Any

from tfyard.formats import shell
from tfyard.formats.pods import templates
from tfyard.formats.tfjob.fields import MAX_REPLICAS
from tfyard.model import Job, Manifest, Role, tensorflow_container
from tfyard.model.names import PORT_NAME

from . import volumes
from .load import RESTART, affinity

Words = dict[str, Any]

_RESTART_WORDS = {policy: word for word, policy in RESTART.items()}


def role_words(job: Job, role: Role) -> Words:
    rest = given_only(templates.with_port(role.template, role.port))
    spec = rest.setdefault("spec", {})
    spec.pop("restartPolicy", None)  # without effect: the role has its own policy
    container = tensorflow_container(rest)
    words: Words = {"count": role.replicas, **_program(job, container)}
    words |= {"restart": _RESTART_WORDS[role.restart]} if role.restart != "Never" else {}
    words |= _port(container) | _env(container) | _resources(container) | _volumes(job, spec, container)
    words |= _placement(job, spec) | _metadata(rest)
    overlay = _remainder(rest, container)
    return words | ({"overlay": overlay} if overlay else {})


def _program(job: Job, container: Manifest) -> Words:
    words: Words = {}
    if image := container.pop("image", ""):
        words["image"] = image
    if container.get("command"):
        words["run"] = _run([*container.pop("command"), *(container.pop("args", None) or [])])
    workdir = container.pop("workingDir", None)
    if workdir and not (job.code and workdir == job.code.at):
        words["workdir"] = workdir
    return words


def _run(command: list[str]) -> str | list[str]:
    line = shell.line_of(command)
    return line if line and line.strip() else command


def _port(container: Manifest) -> Words:
    match container.get("ports"):
        case [{"name": name, "containerPort": number, **rest}] if name == PORT_NAME and not rest:
            del container["ports"]
            return {"port": number}
    return {}


def _env(container: Manifest) -> Words:
    """All or nothing: values may refer to earlier ones, so their order must not change."""
    entries = container.get("env") or []
    values = {entry["name"]: entry.get("value") for entry in entries if set(entry) == {"name", "value"}}
    if not entries or len(values) != len(entries):
        return {}
    del container["env"]
    return {"env": values}


def _resources(container: Manifest) -> Words:
    resources = container.get("resources") or {}
    limits, requests = {**(resources.get("limits") or {})}, resources.get("requests") or {}
    devices = {name: limits.pop(name) for name in [*limits] if name not in ("cpu", "memory")}
    if (
        set(resources) - {"limits", "requests"}
        or requests != limits
        or not all(limits.values())
        or not all(map(_is_count, devices.values()))
    ):
        return {}
    container.pop("resources", None)
    gpu: Any = devices[templates.GPU] if set(devices) == {templates.GPU} else devices
    return {key: limits[key] for key in ("cpu", "memory") if key in limits} | ({"gpu": gpu} if gpu else {})


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 < value <= MAX_REPLICAS


def _volumes(job: Job, spec: Manifest, container: Manifest) -> Words:
    """Volumes with one mount, in the training container, and a source that has a word."""
    claims = claims_of(job)
    mounts = _by_name(container.get("volumeMounts"))
    elsewhere = _mounted_elsewhere(spec, container)
    found: Words = {}
    for volume in spec.get("volumes") or []:
        name = volume["name"]
        own = mounts.get(name, [])
        words = volumes.words_for(volume, own[0]) if len(own) == 1 and name not in elsewhere else None
        if words is not None:
            found[name] = words | volumes.claim_words(claims.get(words.get("claim")))
    for owner, key in ((spec, "volumes"), (container, "volumeMounts")):
        rest = [item for item in owner.pop(key, None) or [] if item.get("name") not in found]
        owner |= {key: rest} if rest else {}
    return {"volumes": found} if found else {}


def claims_of(job: Job) -> dict[Any, Manifest]:
    """The claims that are created with the job: name -> spec."""
    return {made["metadata"]["name"]: made["spec"] for made in job.objects}


def _by_name(items: list[Manifest] | None) -> dict[Any, list[Manifest]]:
    found: dict[Any, list[Manifest]] = {}
    for item in items or []:
        found.setdefault(item.get("name"), []).append(item)
    return found


def _mounted_elsewhere(spec: Manifest, container: Manifest) -> set[Any]:
    others = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    return {
        mount.get("name")
        for other in others
        if other is not container
        for mount in other.get("volumeMounts") or []
    }


def _placement(job: Job, spec: Manifest) -> Words:
    words: Words = {}
    secrets = spec.get("imagePullSecrets")
    if secrets and all(set(secret) == {"name"} for secret in secrets):
        names = [secret["name"] for secret in spec.pop("imagePullSecrets")]
        words["pullSecret"] = names[0] if len(names) == 1 else names
    for field, word in (
        ("serviceAccountName", "serviceAccount"),
        ("nodeSelector", "nodeSelector"),
        ("nodeName", "node"),
        ("tolerations", "tolerations"),
    ):
        if value := spec.pop(field, None):
            words[word] = value
    for spread in ("prefer", "require"):
        if spec.get("affinity") == affinity(spread, job.name):
            words["spread"] = spread
            del spec["affinity"]
    return words


def _metadata(template: Manifest) -> Words:
    metadata = template.get("metadata") or {}
    return {key: value for key in ("labels", "annotations") if (value := metadata.pop(key, None))}


def _remainder(template: Manifest, container: Manifest) -> Manifest:
    """The template after all that has a word was taken out of it."""
    spec = template["spec"]
    if (
        list(container) == ["name"] and len(spec["containers"]) == 1
    ):  # with others, it is needed for their order
        del spec["containers"]
    return {key: part for key, part in template.items() if part}


def given_only(value: Any) -> Any:
    """A copy without nulls and $-fields: to Kubernetes they are "not set" and unknown, but in an overlay they
    would remove a field and give an order."""
    if isinstance(value, dict):
        return {k: given_only(v) for k, v in value.items() if v is not None and not k.startswith("$")}
    return [given_only(item) for item in value] if isinstance(value, list) else value
