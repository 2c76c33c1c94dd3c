"""Prints the operator image's bill of materials (CycloneDX, JSON) from its lock file.

python tools/sbom.py > sbom.json
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tfyard import __version__

LOCK = Path(__file__).resolve().parents[1] / "requirements" / "operator.txt"


def packages(lock: str) -> list[tuple[str, str, list[str]]]:
    """(name, version, sha256 of its files) of each package."""
    listed: list[tuple[str, str, list[str]]] = []
    for line in lock.splitlines():
        if match := re.match(r"([\w.-]+)==([^\s;]+)", line):
            listed.append((match[1], match[2], []))
        elif match := re.search(r"--hash=sha256:([0-9a-f]{64})", line):
            listed[-1][2].append(match[1])
    return listed


def bill(lock: str) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "tfyard/operator", "version": __version__}},
        "components": [_component(*package) for package in packages(lock)],
    }


def _component(name: str, version: str, hashes: list[str]) -> dict[str, Any]:
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name}@{version}",
        "hashes": [{"alg": "SHA-256", "content": content} for content in hashes],
    }


if __name__ == "__main__":
    json.dump(bill(LOCK.read_text()), sys.stdout, indent=2)
    print()
