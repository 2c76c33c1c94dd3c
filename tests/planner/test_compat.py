"""`--compat kubeflow`: where a job must go as under training-operator, beside our own choice."""

from typing import Any

import pytest

from tfyard.model import Create, Decision, Pod
from tfyard.planner import Site

from .builders import begun, deleted, env, job, look, pod, servers, workers

OURS = Site()
UPSTREAM = Site(services="per-replica", dialect="kubeflow", kubeflow=True)

LIMITS = {
    "one restart less than the limit": (3, 2, False, False),
    "as many restarts as the limit": (3, 3, False, True),
    "more restarts than the limit": (3, 4, True, True),
    "no restart at a limit of 0": (0, 0, False, False),
    "a restart at a limit of 0": (0, 1, True, True),
    "a restart at a limit of 1": (1, 1, False, True),
}


@pytest.mark.parametrize(("limit", "restarts", "ours", "upstream"), LIMITS.values(), ids=LIMITS.keys())
def test_upstream_fails_a_job_whose_restarts_reach_the_limit(
    limit: int, restarts: int, ours: bool, upstream: bool
) -> None:
    asked = job(workers(2, "OnFailure"), backoff_limit=limit, clean="All", ttl=60)
    seen = [pod("worker-0", restarts=restarts - restarts // 2), pod("worker-1", restarts=restarts // 2)]
    for site, fails in ((OURS, ours), (UPSTREAM, upstream)):
        decision = look(asked, *seen, status=begun(asked, site=site), site=site)
        assert decision.status.has("Failed") == fails
        assert deleted(decision) == (["mnist-worker-0", "mnist-worker-1"] if fails else [])
        assert decision.wake_after == (60 if fails else None), "clean-up and TTL follow"


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "ExitCode"])
def test_an_evicted_pod_fails_the_job_under_never_with_upstream(policy: str) -> None:
    asked = job(workers(2, policy))
    evicted = pod("worker-0", "Failed", reason="Evicted", disrupted=True)
    ours = look(asked, evicted, pod("worker-1"), status=begun(asked))
    assert (deleted(ours), ours.status.is_finished) == (["mnist-worker-0"], False)
    upstream = look(asked, evicted, pod("worker-1"), status=begun(asked, site=UPSTREAM), site=UPSTREAM)
    assert upstream.status.has("Failed") == (policy == "Never")


SERVICES = frozenset(("Service", f"mnist-{name}") for name in ("worker-0", "worker-1", "ps-0"))
ENDED = [pod("worker-0", "Succeeded"), pod("worker-1"), pod("ps-0")]
CLEANED = {
    "None": ([], []),
    "Running": (["ps-0", "worker-0", "worker-1"], ["ps-0", "worker-1"]),
    "All": (["ps-0", "worker-0", "worker-1"], ["ps-0", "worker-0", "worker-1"]),
}


def ended(site: Site, policy: Any, children: frozenset[tuple[str, str]], *seen: Pod) -> Decision:
    asked = job(workers(2), servers(1), clean=policy)
    first = look(asked, *ENDED, status=begun(asked, site=site), site=site, children=children)
    return look(asked, *seen, status=first.status, site=site, children=children) if seen else first


@pytest.mark.parametrize(("policy", "services"), CLEANED.items(), ids=CLEANED.keys())
def test_the_services_of_pods_that_stay_stay_with_upstream(
    policy: str, services: tuple[list[str], list[str]]
) -> None:
    for site, gone in zip((Site(services="per-replica"), UPSTREAM), services, strict=True):
        decision = ended(site, policy, SERVICES)
        assert decision.status.has("Succeeded")
        assert deleted(decision, "Service") == [f"mnist-{name}" for name in gone]
    left = SERVICES - {("Service", "mnist-ps-0"), ("Service", "mnist-worker-1")}
    if policy == "Running":
        assert ended(UPSTREAM, policy, left, ENDED[0]).actions == ()


def test_a_shared_service_stays_as_long_as_a_pod_does_with_upstream() -> None:
    shared = frozenset({("Service", "mnist")})
    assert deleted(ended(UPSTREAM, "Running", shared), "Service") == []
    assert deleted(ended(UPSTREAM, "All", shared), "Service") == ["mnist"]


@pytest.mark.parametrize(("site", "adopts"), [(OURS, False), (UPSTREAM, True)])
def test_services_without_an_owner_are_adopted_with_upstream(site: Site, adopts: bool) -> None:
    actions = look(job(workers(2)), site=site).actions
    found = {(action.kind, action.adopts) for action in actions if isinstance(action, Create)}
    assert found == {("Service", adopts), ("Pod", False)}


def test_a_dynamic_ps_lists_only_itself_with_upstream() -> None:
    asked = job(workers(2), servers(2), dynamic_workers=True)
    config = env(look(asked, site=UPSTREAM), "ps-1")["TF_CONFIG"]
    own = "mnist-ps-1.lab.svc:2222"
    assert config == f'{{"cluster":{{"worker":{{}},"ps":["{own}"]}},"task":{{"type":"ps","index":1}}}}'
    ours = env(look(asked), "ps-1")["TF_CONFIG"]
    assert "mnist-ps-0.mnist.lab.svc:2222" in ours
