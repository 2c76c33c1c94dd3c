"""Reads the operator's config file, and makes the Site of its jobs from it."""

import logging
from pathlib import Path

from tfyard import planner
from tfyard.errors import Usage
from tfyard.formats.controllerconfig import AcceleratorConfig, OperatorConfig, load
from tfyard.model.names import TENSORBOARD_IMAGE
from tfyard.planner.site import DriverEnv, DriverMount

log = logging.getLogger(__name__)


def read_config(path: Path) -> OperatorConfig:
    """The config of the file `--config`; raises Invalid with all its problems."""
    try:
        return load(path.read_bytes(), str(path))
    except OSError as problem:
        raise Usage(f"cannot read the config {path}: {problem.strerror}") from problem


def read_server_script(config: OperatorConfig) -> str:
    """The script of the platform's own parameter server. Its path in old configs exists only in the old operator's
    image, so the operator starts without the file: tfyard's own server does the same."""
    path = config.grpc_server_file_path
    if not path:
        return ""
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8"
        log.warning("grpcServerFilePath %s: %s; default PS run tfyard's own server", path, reason)
        return ""


def site(config: OperatorConfig, server_script: str = "") -> planner.Site:
    return planner.Site(
        services=config.services,
        domain=config.cluster_domain,
        dialect=config.dialect,
        accelerators={resource: _accelerator(entry) for resource, entry in config.accelerators.items()},
        server_script=server_script,
        server_image=config.ps_image or config.tf_image,
        server_command=tuple(config.ps_command),
        tensorboard_image=config.tensorboard_image or config.tf_image or TENSORBOARD_IMAGE,
    )


def _accelerator(config: AcceleratorConfig) -> planner.Accelerator:
    return planner.Accelerator(
        volumes=tuple(DriverMount(each.name, each.host_path, each.mount_path) for each in config.volumes),
        env_vars=tuple(DriverEnv(each.name, each.value) for each in config.env_vars),
    )
