"""The settings of an installation, read from its objects: a second `tfyard install` keeps what it is not given."""

import re

from msgspec.structs import replace

from tfyard.model import Manifest

from . import permissions, roles
from .clouds import CONFIGS
from .settings import CONFIG_KEY, NAME, Settings

_RELEASE = re.compile(r"\d+\.\d+\.\d+")


def of_deployment(deployment: Manifest, defaults: Settings) -> Settings:
    """What the Deployment tells; the rest is that of `defaults`."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    container = next(each for each in containers if each["name"] == NAME)
    arguments = dict(each.partition("=")[::2] for each in container.get("args") or [])
    return replace(
        defaults,
        image=_image(container["image"], defaults.image),
        namespaces=tuple(filter(None, arguments.get("--namespaces", "").split(","))),
        replicas=max(1, deployment["spec"].get("replicas", 1)),
    )


def cloud_of(config: Manifest) -> str:
    """The cloud of the operator's ConfigMap; empty: it was written by hand."""
    text = config["data"].get(CONFIG_KEY)
    return next((name for name, known in CONFIGS.items() if known == text), "")


def reads_logs(role: Manifest) -> bool:
    (granted,) = roles.rules([permissions.POD_LOGS])
    return any(granted["resources"][0] in rule.get("resources", ()) for rule in role["rules"] or ())


def flags(settings: Settings, defaults: Settings) -> list[str]:
    """The flags of `tfyard install` by which settings differ from the defaults."""
    changed = {
        "--image": settings.image if settings.image != defaults.image else "",
        "--namespaces": ",".join(settings.namespaces) if settings.namespaces != defaults.namespaces else "",
        "--cloud": settings.cloud if settings.cloud != defaults.cloud else "",
        "--replicas": settings.replicas if settings.replicas != defaults.replicas else "",
    }
    told = [f"{flag} {value}" for flag, value in changed.items() if value]
    return [*told, *(["--read-logs"] if settings.read_logs and not defaults.read_logs else [])]


def _image(image: str, default: str) -> str:
    """The installed image; of a release, with the tag of the default, so that installing again upgrades."""
    repository, _, tag = image.rpartition(":")
    is_release = "@" not in image and _RELEASE.fullmatch(tag)
    return f"{repository}:{default.rpartition(':')[2]}" if is_release else image
