"""The permission that a user lacks, by the server's message, and how an administrator grants it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tfyard.kube import Forbidden, KubeError, Refused

VIEW, EDIT = "view", "edit"
"""ClusterRoles of every cluster: one may read pods and their logs, the other may enter and make pods, too."""
_MAY_NOT = r'cannot (?P<verb>\w+) resource "(?P<what>[^"]+)"'
_USER = r'[Uu]ser "(?P<who>[^"]+)"'


def missing_right(refusal: Refused, namespace: str, role: str) -> str:
    """One line about it. `role`: a ClusterRole that has it. Empty: the refusal has another reason."""
    message = refusal.status.message
    denied, user = re.search(_MAY_NOT, message), re.search(_USER, message)
    if not denied:
        return ""
    who = user["who"] if user else "USER"
    fix = f"kubectl create rolebinding tfyard -n {namespace} --clusterrole={role} --user={who}"
    where = f" in the namespace {namespace}" if namespace else ""
    return f"{who} may not {denied['verb']} {denied['what']}{where}; an administrator allows it by `{fix}`"


def granted(problem: KubeError, namespace: str, role: str) -> KubeError:
    """The error with the text of `missing_right`, if a permission is missing."""
    if isinstance(problem, Forbidden) and (text := missing_right(problem, namespace, role)):
        return Forbidden(replace(problem.status, message=text))
    return problem


@contextmanager
def explained(namespace: str, role: str) -> Iterator[None]:
    """Raises Forbidden with the text of `missing_right`."""
    try:
        yield
    except Forbidden as refusal:
        raise granted(refusal, namespace, role) from None
