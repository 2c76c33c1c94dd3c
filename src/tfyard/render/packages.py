"""`requirements`: packages that pip installs before the training, into a layer that PYTHONPATH names.

On a claim the layer is kept for all tasks and jobs with the same image and the same file; without a claim, each
pod has its own.
"""

import hashlib

from tfyard.model import Code, Manifest, tensorflow_container

from . import podspec, scripts, tf1

VOLUME = "tfyard-packages"
AT = "/tfyard-packages"
FOLDER = "tfyard-code/packages"
"""Of the claim: beside the code."""
_SCRIPT = "requirements.py"
_OTHERS = "TFYARD_OTHER_PACKAGES"
"""Keeps what the job itself sets as PYTHONPATH."""


def add(template: Manifest, code: Code, code_mount: Manifest, layer: tuple[Manifest, str]) -> Manifest:
    """Whose init container is the first: what brings the code must be put before it. `layer`: from `on_claim` or
    `in_pod`."""
    volume, name = layer
    sub_path = {"subPath": FOLDER} if "persistentVolumeClaim" in volume else {}
    mount: Manifest = {"name": volume["name"], "mountPath": AT, **sub_path}
    script = scripts.read(_SCRIPT)
    command = podspec.python("-c", script, f"{code.at}/{code.requirements}", AT, name)
    step = podspec.init_container(VOLUME, template, command, [code_mount, mount])
    step["workingDir"] = code.at  # paths in the file, such as ./package.whl, begin there
    step["terminationMessagePolicy"] = "FallbackToLogsOnError"  # pip's last words are why the task failed
    if all(each["name"] != volume["name"] for each in template["spec"].get("volumes") or []):
        template = {**template, "spec": podspec.append(template["spec"], "volumes", [volume])}
    template = podspec.change_container(
        template, lambda c: podspec.append(c, "volumeMounts", [{**mount, "readOnly": True}])
    )
    template = podspec.add_init_container(template, step, first=True)
    return tf1.with_folder(template, f"{AT}/{name}", keep=_OTHERS)


def in_pod() -> tuple[Manifest, str]:
    return {"name": VOLUME, "emptyDir": {}}, "layer"


def on_claim(volume: Manifest, requirements: bytes, template: Manifest) -> tuple[Manifest, str]:
    """The volume of the code, and the layer's name: it changes with the file and the image."""
    image = str(tensorflow_container(template).get("image") or "")
    return volume, hashlib.sha256(image.encode() + b"\0" + requirements).hexdigest()[:16]
