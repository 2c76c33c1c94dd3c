"""Driver mounts for containers that request a device, from the operator's `accelerators` config.

Old clusters had no device plugin: each pod mounted the node's driver itself. The operator's config says
what to mount for which resource, so that jobs need not.
"""

from collections.abc import Iterable, Mapping

from tfyard.model import TENSORFLOW_CONTAINER, Manifest

from .site import Accelerator, DriverMount

OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"
GPU = "nvidia.com/gpu"


def with_drivers(spec: Manifest, accelerators: Mapping[str, Accelerator]) -> Manifest:
    """The pod spec plus what its `tensorflow` container needs; what the user wrote is kept and not repeated."""
    containers = spec.get("containers", [])
    position = next((i for i, c in enumerate(containers) if c.get("name") == TENSORFLOW_CONTAINER), None)
    if position is None or not accelerators:
        return spec
    for accelerator in _requested(containers[position], accelerators):
        spec = _with_accelerator(spec, position, accelerator)
    return spec


def _requested(container: Manifest, accelerators: Mapping[str, Accelerator]) -> Iterable[Accelerator]:
    resources = container.get("resources") or {}
    requested = {_modern(name) for part in ("limits", "requests") for name in resources.get(part) or {}}
    return [config for name, config in accelerators.items() if _modern(name) in requested]


def _modern(resource: str) -> str:
    """Configs of 2017 use the GPU's old name; jobs get today's name when they are loaded."""
    return GPU if resource == OLD_GPU else resource


def _with_accelerator(spec: Manifest, position: int, accelerator: Accelerator) -> Manifest:
    container = spec["containers"][position]
    volumes, mounts = list(spec.get("volumes") or ()), list(container.get("volumeMounts") or ())
    for driver in accelerator.volumes:
        if all(mount.get("mountPath") != driver.mount_path for mount in mounts):
            mounts.append({"name": _ensure_volume(volumes, driver), "mountPath": driver.mount_path})
    env = list(container.get("env") or ())
    known = {entry.get("name") for entry in env}
    env += [{"name": e.name, "value": e.value} for e in accelerator.env_vars if e.name not in known]
    equipped = {**container, "volumeMounts": mounts, "env": env}
    containers = [equipped if i == position else c for i, c in enumerate(spec["containers"])]
    return {**spec, "containers": containers, "volumes": volumes}


def _ensure_volume(volumes: list[Manifest], driver: DriverMount) -> str:
    """The name of a volume for this driver: an equal one is shared; another one of the same name is kept."""
    wanted = {"path": driver.host_path}
    taken = {volume.get("name"): volume for volume in volumes}
    name = driver.name
    while name in taken:
        if taken[name].get("hostPath") == wanted:
            return name
        name += "-driver"
    volumes.append({"name": name, "hostPath": wanted})
    return name
