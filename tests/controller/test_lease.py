"""What a candidate concludes from a Lease, by its own clock only."""

from datetime import UTC, datetime

import pytest

from tfyard.controller.leader_election import new_identity
from tfyard.controller.lease import Candidate, LeaseTiming, Observation
from tfyard.errors import Usage
from tfyard.model import Manifest

NOW = datetime(2026, 3, 1, 12, 0, 0, 42, tzinfo=UTC)
TERMS = LeaseTiming(10, 7, 2)
ADA, BOB = Candidate("ada", "ns"), Candidate("bob", "ns")


def lease(holder: str = "ada", renewed: str = "2026-01-01T00:00:00.000000Z", **spec: object) -> Manifest:
    return {"spec": {"holderIdentity": holder, "leaseDurationSeconds": 10, "renewTime": renewed, **spec}}


def seen(*looks: tuple[float, Manifest | None]) -> Observation:
    observation = Observation()
    for at, found in looks:
        observation.update(found, at)
    return observation


def test_the_first_claim_is_a_whole_lease_without_a_transition() -> None:
    assert ADA.claim(None, TERMS, NOW) == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "tfyard-operator", "namespace": "ns"},
        "spec": {
            "holderIdentity": "ada",
            "leaseDurationSeconds": 10,
            "acquireTime": "2026-03-01T12:00:00.000042Z",
            "renewTime": "2026-03-01T12:00:00.000042Z",
            "leaseTransitions": 0,
        },
    }


def test_a_renewal_changes_nothing_but_the_time_and_keeps_what_others_wrote() -> None:
    found = {**lease(strategy="x", leaseTransitions=4), "metadata": {"labels": {"a": "b"}}}
    claimed = ADA.claim(found, TERMS, NOW)
    spec = {**found["spec"], "renewTime": "2026-03-01T12:00:00.000042Z"}
    assert claimed == {**found, "spec": spec}


def test_taking_over_counts_a_transition() -> None:
    claimed = BOB.claim(lease(leaseTransitions=4), TERMS, NOW)
    assert claimed["spec"]["leaseTransitions"] == 5
    assert claimed["spec"]["acquireTime"] == claimed["spec"]["renewTime"]


FREE_IN = {
    "no lease was ever seen": (seen((0, None)), 0),
    "a lease just seen is held for its whole duration, however old its time": (seen((100, lease())), 10),
    "an unchanged lease runs out": (seen((95, lease()), (99, lease())), 5),
    "a lease unchanged for its duration is free": (seen((90, lease()), (99, lease())), 0),
    "a renewal starts the count again": (seen((90, lease()), (98, lease(renewed="another"))), 8),
    "a label is no sign of life": (seen((95, lease()), (99, {**lease(), "metadata": {"labels": {}}})), 5),
    "the holder's own promise counts": (seen((95, lease(leaseDurationSeconds=60))), 55),
    "a lease that promises nothing has our terms": (seen((95, {"spec": {"holderIdentity": "x"}})), 10),
    "a lease handed back is free": (seen((100, lease(holder=""))), 0),
    "an empty lease is free": (seen((100, {"metadata": {}})), 0),
    "a lease deleted under its holder is not free yet": (seen((95, lease()), (99, None)), 5),
    "an absurd promise is believed for a minute": (seen((45, lease(leaseDurationSeconds=100_000))), 5),
    "a holder with an absurd promise that renews stays": (
        seen(
            (30, lease(leaseDurationSeconds=100_000)),
            (99, lease("ada", "later", leaseDurationSeconds=100_000)),
        ),
        59,
    ),
    "a deleted lease is free after our own duration": (
        seen((90, lease(leaseDurationSeconds=100_000)), (99, None)),
        5,
    ),
}


@pytest.mark.parametrize(("observation", "seconds"), FREE_IN.values(), ids=FREE_IN.keys())
def test_a_lease_is_free_when(observation: Observation, seconds: float) -> None:
    assert observation.free_in(100, fallback=15) == seconds


@pytest.mark.parametrize("wrong", [(7, 7, 2), (10, 4, 2), (10, 7, 0)])
def test_terms_that_could_have_two_leaders_are_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(Usage, match="lease duration > renew deadline"):
        LeaseTiming(*wrong)


def test_two_processes_on_one_host_have_different_identities() -> None:
    assert new_identity() != new_identity()
