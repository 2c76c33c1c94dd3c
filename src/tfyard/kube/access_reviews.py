"""Asks the server whether the user may do something: it answers for every kind of authorization."""

from typing import Any

from tfyard.kube.errors import Undecodable
from tfyard.kube.requests import Request, Resource, create
from tfyard.model.permission import Permission

REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", namespaced=False)


def review(permission: Permission, verb: str) -> Request:
    attributes = {
        "verb": verb,
        "namespace": permission.namespace,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
        "name": "" if verb == "create" else permission.name,  # a role cannot name a new object
    }
    return create(REVIEWS.path(), {"spec": {"resourceAttributes": attributes}})


def is_allowed(answer: Any) -> bool:
    try:
        return bool(answer["status"]["allowed"])
    except (KeyError, TypeError) as problem:
        raise Undecodable("the answer to a review of access is none", b"") from problem
