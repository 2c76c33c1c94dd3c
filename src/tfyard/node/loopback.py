"""Where pods cannot have networks of their own: the `host:port` pairs of a job become ports of this machine.

TF_CONFIG and flags such as --worker_hosts name each task as host:port, to all tasks alike, so it is enough to
replace each pair by the same free port of the loopback in all of them. What listens on a port that no pair names
(TensorBoard's, say) listens on that very port of the machine.
"""

import re
from collections.abc import Callable, Collection

from .containers import LOOPBACK
from .hosts import DOMAIN

LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
PAIR = re.compile(rf"(?<![\w.:@-])({LABEL}(?:\.{LABEL})*)\.?:(\d{{1,5}})(?![\w.])")


class LoopbackPorts:
    """`take` gives a free port."""

    def __init__(self, take: Callable[[], int]) -> None:
        self._take = take
        self.replaced: dict[str, int] = {}
        """`name.namespace:port` -> the port here."""

    def rewrite(self, text: str, namespace: str, services: Collection[str]) -> str:
        """The text of a pod of this namespace with every pair replaced whose host is a name of the cluster:
        `services` has the Services as `name.namespace`; and what ends in .svc can be nothing else."""

        def replace(pair: re.Match[str]) -> str:
            name = _full_name(pair[1], namespace, services)
            return f"{LOOPBACK}:{self._port(f'{name}:{pair[2]}')}" if name else pair[0]

        return PAIR.sub(replace, text)

    def _port(self, pair: str) -> int:
        if pair not in self.replaced:
            self.replaced[pair] = self._take()
        return self.replaced[pair]


def _full_name(host: str, namespace: str, services: Collection[str]) -> str:
    """`name.namespace`, or `hostname.name.namespace` of a pod; empty: it is no name of the cluster."""
    base = host.removesuffix(DOMAIN).removesuffix(".svc")
    forms = (base, f"{base}.{namespace}")
    known = (form for form in forms if form in services or form.partition(".")[2] in services)
    return next(known, base if base != host else "")
