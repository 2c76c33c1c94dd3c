"""The other tasks whose addresses a program gets, and those of them that are not in the input."""

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from tfyard.formats.yaml.source import Document
from tfyard.model import PS, WORKER, Manifest
from tfyard.model.expansion import expand

from . import commands, identity

Hosts = dict[str, tuple[str, ...] | None]
"""Role -> addresses of its tasks; None if the list is not in the input."""

_ROLES = {"PS_HOSTS": PS, "WORKER_HOSTS": WORKER}
_CLUSTER = re.compile(r"""["'](\w+)["']\s*:\s*\[([^\]]*)\]""")
"""A role in a cluster spec, in JSON or in Python's notation with a comma after the last item."""
_ADDRESS = re.compile(r"""["']([^"']+)["']""")
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")
Labels = dict[str, str]


class MissingPeer(Struct, frozen=True):
    task: str
    """Role and index, such as `ps 0`."""
    address: str

    def __str__(self) -> str:
        return f"{self.task} ({self.address})" if self.address else self.task


def config_maps(documents: Iterable[Document]) -> dict[str, Labels]:
    by_name = {}
    for document in documents:
        data = document.data if isinstance(document.data, dict) else {}
        entries = data.get("data")
        if data.get("kind") == "ConfigMap" and isinstance(entries, dict):
            by_name[name_of(data)] = {key: text for key, text in entries.items() if isinstance(text, str)}
    return by_name


def name_of(data: Manifest) -> str:
    meta = data.get("metadata")
    return str(meta.get("name", "")) if isinstance(meta, dict) else ""


def listed(container: Manifest, maps: Mapping[str, Labels]) -> Hosts:
    """The hosts that a container gets by flags, by the variables in them, and by cluster specs in variables."""
    env = dict(_variables(container, maps))
    hosts: Hosts = {}
    for name in ("TF_CONFIG", "CLUSTER_CONFIG"):
        hosts |= _cluster(env.get(name) or "")
    variables = {new: f"$({old})" for old, new in commands.HOSTS.items() if old in env}
    for name, text in (variables | commands.flag_values(commands.words(container))).items():
        hosts[_ROLES[name]] = _addresses(_expanded(text, env))
    return hosts


def _variables(container: Manifest, maps: Mapping[str, Labels]) -> Iterator[tuple[str, str]]:
    """The container's variables whose values are in the input."""
    for entry in container.get("env") or []:
        source = (entry.get("valueFrom") or {}).get("configMapKeyRef") or {}
        text = entry.get("value") or maps.get(str(source.get("name")), {}).get(str(source.get("key")))
        if isinstance(text, str):
            yield entry["name"], text


def _expanded(text: str, env: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: env.get(match[1] or match[2], match[0]), expand(text, env))


def _addresses(text: str) -> tuple[str, ...] | None:
    return None if "$" in text or "`" in text else tuple(filter(None, map(str.strip, text.split(","))))


def _cluster(text: str) -> Hosts:
    roles = {identity.role_of(word): tuple(_ADDRESS.findall(hosts)) for word, hosts in _CLUSTER.findall(text)}
    return {role: hosts for role, hosts in roles.items() if role is not None}


def missing(hosts: Iterable[Hosts], present: Mapping[str, set[int]]) -> list[MissingPeer]:
    """Tasks that are listed as hosts but not `present`, which has the indexes of each role."""
    absent: list[MissingPeer] = []
    for cluster in hosts:
        for role, addresses in cluster.items():
            have, word = present.get(role, set()), role.lower()
            if addresses is None and not have:
                absent.append(MissingPeer(word, ""))
            for index, address in enumerate(addresses or ()):
                if index not in have:
                    absent.append(MissingPeer(f"{word} {index}", address))
    return list(dict.fromkeys(absent))


def unselected(documents: Iterable[Document], pods: list[Labels]) -> list[Manifest]:
    """Services that select none of these pods."""
    services = [d.data for d in documents if isinstance(d.data, dict) and d.data.get("kind") == "Service"]
    return [service for service in services if not any(_selects(service, labels) for labels in pods)]


def _selects(service: Manifest, labels: Labels) -> bool:
    spec = service.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    return isinstance(selector, dict) and selector.items() <= labels.items() if selector else False
