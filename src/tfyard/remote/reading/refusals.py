"""The permissions that a user lacks, and how an administrator grants them: by the message of a refusal, or asked
for before an action, so that a button can say it. Only the server decides."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from tfyard.kube import Forbidden, KubeError, Refused, Resource
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.sync import SyncClient
from tfyard.model.permission import Permission

VIEW, EDIT = "view", "edit"
"""ClusterRoles of every cluster: one may read pods and their logs, the other may enter and make pods, too."""
ACTIONS = {
    "stop": "patch",
    "resume": "patch",
    "scale": "patch",
    "rerun": "create",
    "delete": "delete",
}
"""Actions on the job itself -> the verb that each needs."""
POD_ACTIONS = {
    "restart": Permission("", "pods", ("delete",)),
    "tensorboard": Permission("", "pods", ("create",), "portforward"),
    "notebook": Permission("", "pods", ("create",), "portforward"),
    "logs": Permission("", "pods", ("get",), "log"),
}
ACTIONS_ROLE = "tfyard-edit"
_MAY_NOT = r'cannot (?P<verb>\w+) resource "(?P<what>[^"]+)"'
_USER = r'[Uu]ser "(?P<who>[^"]+)"'


def missing_right(refusal: Refused, namespace: str, role: str) -> str:
    """One line about the permission that is missing. `role`: a ClusterRole that has it. Empty: the refusal has
    another reason."""
    message = refusal.status.message
    denied, user = re.search(_MAY_NOT, message), re.search(_USER, message)
    if not denied:
        return ""
    who = user["who"] if user else ""
    return _sentence(who, denied["verb"], denied["what"], namespace, role)


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


def missing_permissions(client: SyncClient, resource: Resource, namespace: str) -> dict[str, str]:
    """Action -> the permission that is missing for it, as a sentence with its fix. Each is asked for once."""
    answers, missing = dict[tuple[str, str], bool](), dict[str, str]()
    jobs = {action: Permission(resource.group, resource.plural, (verb,)) for action, verb in ACTIONS.items()}
    for action, needed in {**jobs, **POD_ACTIONS}.items():
        verb, what = needed.verbs[0], "/".join(filter(None, (needed.resource, needed.subresource)))
        if (verb, what) not in answers:
            answers[verb, what] = _may(client, needed, namespace)
        if not answers[verb, what]:
            missing[action] = _sentence("", verb, what, namespace, ACTIONS_ROLE)
    return missing


def _may(client: SyncClient, needed: Permission, namespace: str) -> bool:
    asked = Permission(needed.group, needed.resource, needed.verbs, needed.subresource, namespace=namespace)
    return is_allowed(client.send(review(asked, asked.verbs[0])))


def _sentence(who: str, verb: str, what: str, namespace: str, role: str) -> str:
    fix = f"kubectl create rolebinding tfyard -n {namespace} --clusterrole={role} --user={who or 'USER'}"
    where = f" in the namespace {namespace}" if namespace else ""
    return f"{who or 'you'} may not {verb} {what}{where}; an administrator allows it by `{fix}`"
