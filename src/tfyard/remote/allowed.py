"""Which actions on a job the user may not perform, by the server's own answers: buttons say so before they are
pressed. It only informs; the server decides when an action is performed."""

from tfyard.kube import KubeError, Resource
from tfyard.kube.access_reviews import is_allowed, review
from tfyard.kube.sync import SyncClient
from tfyard.model.permission import Permission

NEEDS = {
    "stop": "patch",
    "resume": "patch",
    "scale": "patch",
    "rerun": "create",
    "delete": "delete",
}
"""Actions on the job itself -> the verb that each needs."""
PODS = {
    "restart": Permission("", "pods", ("delete",)),
    "tensorboard": Permission("", "pods", ("create",), "portforward"),
    "notebook": Permission("", "pods", ("create",), "portforward"),
    "logs": Permission("", "pods", ("get",), "log"),
}
ROLE = "tfyard-edit"


def missing(client: SyncClient, resource: Resource, namespace: str) -> dict[str, str]:
    """Action -> the missing permission as a sentence, with its fix. Each permission is asked for once."""
    answers = dict[tuple[str, str], bool]()
    found = dict[str, str]()
    jobs = {
        action: Permission(resource.group, resource.plural, (verb,), namespace=namespace)
        for action, verb in NEEDS.items()
    }
    for action, needed in {**jobs, **PODS}.items():
        what = "/".join(filter(None, (needed.resource, needed.subresource)))
        key = (needed.verbs[0], what)
        if key not in answers:
            answers[key] = _may(client, needed, namespace)
        if not answers[key]:
            fix = f"kubectl create rolebinding tfyard -n {namespace} --clusterrole={ROLE} --user=USER"
            text = f"you may not {key[0]} {what} in the namespace {namespace}"
            found[action] = f"{text}; an administrator allows it by `{fix}`"
    return found


def _may(client: SyncClient, needed: Permission, namespace: str) -> bool:
    asked = Permission(needed.group, needed.resource, needed.verbs, needed.subresource, namespace=namespace)
    try:
        return is_allowed(client.send(review(asked, asked.verbs[0])))
    except KubeError:
        return True  # the server says what is missing when the action is performed
