"""The table of permissions, as values and as text."""

from tfyard.install.permissions import (
    EVENTS,
    Permission,
    in_namespaces,
    of_jobs,
    of_lease,
    of_pod_groups,
)


def test_a_permission_reads_as_kubectl_would_say_it() -> None:
    status = of_jobs("kubeflow.org")[1]
    assert str(status) == "update tfjobs.kubeflow.org/status in all namespaces"
    assert str(in_namespaces([EVENTS], ["team-a"])[0]) == "create events in namespace team-a"


def test_permissions_are_needed_in_each_namespace_or_in_all() -> None:
    assert [each.namespace for each in in_namespaces([EVENTS], ["team-a", "team-b"])] == ["team-a", "team-b"]
    assert in_namespaces([EVENTS], []) == [EVENTS]


def test_only_pod_groups_that_can_change_are_patched() -> None:
    group = "scheduling.volcano.sh"
    (kept,) = of_pod_groups(group, patch=False)
    assert of_pod_groups(group, patch=True) == [kept, Permission(group, "podgroups", ("patch",))]


def test_the_lease_is_named_so_that_a_role_can_be_narrow() -> None:
    assert of_lease("team-a").name == "tfyard-operator"
