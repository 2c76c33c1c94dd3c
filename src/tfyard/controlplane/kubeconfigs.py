"""An Access as the text of a kubeconfig: for kubectl, for the controllers, for a child process of a test."""

from typing import Any

import msgspec
import yaml

from tfyard.kube import Access


def dump(access: Access) -> str:
    doc = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "box", "cluster": _filled(access.cluster)}],
        "users": [{"name": "user", "user": _filled(access.user)}],
        "contexts": [
            {"name": "box", "context": {"cluster": "box", "user": "user", "namespace": access.namespace}}
        ],
        "current-context": "box",
    }
    return yaml.safe_dump(doc, sort_keys=False)


def _filled(part: msgspec.Struct) -> dict[str, Any]:
    return {key: value for key, value in msgspec.to_builtins(part).items() if value}
