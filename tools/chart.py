"""Writes the generated parts of the Helm chart: CRDs, RBAC rules, cloud configs, the table in its README, and
manifests/install.yaml. A test compares them with the committed files.

    python tools/chart.py
"""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from tfyard import __version__, formats
from tfyard.formats.crd.documents import crds
from tfyard.formats.tfjob.versions import VERSIONS
from tfyard.install import manifests, permissions, roles
from tfyard.install.clouds import CONFIGS
from tfyard.install.settings import REPOSITORY, Settings

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts" / "tfyard"


def generated() -> dict[Path, str]:
    """Path -> content of every generated file."""
    return {
        **_definitions(),
        **_rules(),
        **{CHART / f"files/clouds/{cloud}.yaml": text for cloud, text in CONFIGS.items()},
        CHART / "README.md": _readme(),
        ROOT / "manifests/install.yaml": manifest(),
    }


def manifest() -> str:
    settings = Settings(image=f"{REPOSITORY}:{__version__}")
    return formats.to_yaml(manifests.namespace(settings), *manifests.objects(settings))


def _definitions() -> dict[Path, str]:
    """CRDs in one file per version, so that the chart can serve any choice of them."""
    files = {}
    for definition in crds(VERSIONS):
        spec = dict(definition["spec"])
        versions, folder = spec.pop("versions"), CHART / "files/crds" / spec["group"]
        order = [version["name"] for version in versions]
        head = {"group": spec["group"], "order": order, "spec": spec}
        files[folder / "definition.json"] = json.dumps(head, indent=2) + "\n"
        for version in versions:
            files[folder / f"{version['name']}.json"] = json.dumps(version, separators=(",", ":")) + "\n"
    return files


def _rules() -> dict[Path, str]:
    gang = {f"gang-{name}": granted for name, granted in roles.GANG_SCHEDULERS.items()}
    by_file = {
        "operator": roles.OPERATOR_RULES,
        "nodes": [permissions.NODES],
        "logs": [permissions.POD_LOGS],
        "lease": [permissions.LEASE],
        "view": roles.VIEW_RULES,
        "edit": roles.EDIT_RULES,
        "sweep": roles.SWEEP_RULES,
        "sweep-reader": roles.SWEEP_READER_RULES,
        **gang,
    }
    return {
        CHART / f"files/rules/{name}.yaml": yaml.safe_dump(roles.rules(each), sort_keys=False)
        for name, each in by_file.items()
    }


# --- the table of values


def _readme() -> str:
    text = (CHART / "README.md").read_text()
    head, _, table = text.partition("<!-- values -->\n")
    _, _, tail = table.partition("<!-- end of values -->\n")
    rows = "\n".join(f"| `{name}` | {default} | {about} |" for name, default, about in _values())
    return (
        f"{head}<!-- values -->\n| value | default | |\n|---|---|---|\n{rows}\n<!-- end of values -->\n{tail}"
    )


def _values() -> list[tuple[str, str, str]]:
    """Every value with a `# --` comment above it."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    defaults = yaml.safe_load("\n".join(lines))
    rows, about, path = [], "", [""]
    for line in lines:
        if match := re.match(r"( *)# (-- )?(.*)", line):
            about = match[3] if match[2] else f"{about} {match[3]}"
        elif match := re.match(r"( *)([\w]+):", line):
            path = [*path[: len(match[1]) // 2], match[2]]
            if about:
                rows.append((".".join(path), _shown(_at(defaults, path)), about))
            about = ""
    return rows


def _at(defaults: Any, path: list[str]) -> Any:
    for step in path:
        defaults = defaults[step]
    return defaults


def _shown(value: Any) -> str:
    return "" if value in ("", [], {}) else f"`{json.dumps(value, ensure_ascii=False)}`"


if __name__ == "__main__":
    for path, content in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
