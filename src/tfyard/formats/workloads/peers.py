"""The other tasks that a program is told of, and those of them that are not in the input."""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from tfyard.formats.yaml.source import Document
from tfyard.model import PS, WORKER, Manifest
from tfyard.model.expansion import expand

from . import commands, identity

Hosts = dict[str, tuple[str, ...] | None]
"""Role -> addresses of its tasks; None if there is a list that cannot be read here."""

_ROLES = {"PS_HOSTS": PS, "WORKER_HOSTS": WORKER}
_CLUSTER = re.compile(r"""["'](\w+)["']\s*:\s*\[([^\]]*)\]""")
"""A role in a cluster spec: JSON, or as Python writes it, with a comma after the last item."""
_ADDRESS = re.compile(r"""["']([^"']+)["']""")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
Labels = dict[str, str]


class Missing(Struct, frozen=True):
    task: str
    """As in `ps 0`."""
    address: str

    def __str__(self) -> str:
        return f"{self.task} ({self.address})" if self.address else self.task


def config_maps(documents: Iterable[Document]) -> dict[str, Labels]:
    found = {}
    for document in documents:
        data = document.data if isinstance(document.data, dict) else {}
        entries = data.get("data")
        if data.get("kind") == "ConfigMap" and isinstance(entries, dict):
            found[name_of(data)] = {key: text for key, text in entries.items() if isinstance(text, str)}
    return found


def name_of(data: Manifest) -> str:
    meta = data.get("metadata")
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


def listed(container: Manifest, maps: Mapping[str, Labels]) -> Hosts:
    """By flags, by the variables that they refer to, and by cluster specs in variables."""
    env = dict(_variables(container, maps))
    found: Hosts = {}
    for name in ("TF_CONFIG", "CLUSTER_CONFIG"):
        found |= _cluster(env.get(name) or "")
    given = {new: f"$({old})" for old, new in commands.HOSTS.items() if old in env}
    for name, text in (given | commands.flag_values(commands.words(container))).items():
        found[_ROLES[name]] = _addresses(_expanded(text, env))
    return found


def _variables(container: Manifest, maps: Mapping[str, Labels]) -> Iterator[tuple[str, str]]:
    """Those whose values are in the input."""
    for entry in container.get("env") or []:
        source = (entry.get("valueFrom") or {}).get("configMapKeyRef") or {}
        text = entry.get("value") or maps.get(str(source.get("name")), {}).get(str(source.get("key")))
        if isinstance(text, str):
            yield entry["name"], text


def _expanded(text: str, env: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda found: env.get(found[1] or found[2], found[0]), expand(text, env))


def _addresses(text: str) -> tuple[str, ...] | None:
    return None if "$" in text or "`" in text else tuple(filter(None, map(str.strip, text.split(","))))


def _cluster(text: str) -> Hosts:
    roles = {identity.role_of(word): tuple(_ADDRESS.findall(hosts)) for word, hosts in _CLUSTER.findall(text)}
    return {role: hosts for role, hosts in roles.items() if role is not None}


def missing(hosts: Iterable[Hosts], present: Mapping[str, set[int]]) -> list[Missing]:
    """The tasks that somebody lists, and that are not among these: role -> indexes."""
    found: list[Missing] = []
    for one in hosts:
        for role, addresses in one.items():
            have, word = present.get(role, set()), role.lower()
            if addresses is None and not have:
                found.append(Missing(word, ""))
            for index, address in enumerate(addresses or ()):
                if index not in have:
                    found.append(Missing(f"{word} {index}", address))
    return list(dict.fromkeys(found))


def unselected(documents: Iterable[Document], pods: list[Labels]) -> list[Manifest]:
    """The Services that select none of these pods."""
    services = [d.data for d in documents if isinstance(d.data, dict) and d.data.get("kind") == "Service"]
    return [one for one in services if not any(_selects(one, labels) for labels in pods)]


def _selects(service: Manifest, labels: Labels) -> bool:
    spec = service.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    return isinstance(selector, dict) and selector.items() <= labels.items() if selector else False
