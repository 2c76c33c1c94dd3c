"""What may be done to which resource: the operator asks the server for it, and roles are written from it."""

from msgspec import Struct

RBAC = "rbac.authorization.k8s.io"
"""The API group of roles."""


class Permission(Struct, frozen=True, order=True):
    """Verbs on a resource or subresource, in one namespace or, if that is empty, in all."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    subresource: str = ""
    name: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        what = ".".join(filter(None, (self.resource, self.group)))
        what = f"{what}/{self.subresource}" if self.subresource else what
        where = f"namespace {self.namespace}" if self.namespace else "all namespaces"
        return f"{', '.join(self.verbs)} {what} in {where}"
