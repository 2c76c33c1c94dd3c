"""Leader election on a real server: there is one leader at a time, never two, and never none for long."""

import asyncio
import signal
import subprocess
import sys
import time
from datetime import datetime

import msgspec
import pytest

from tests.controller.standing import TERMS, Standing, candidate, stored
from tfyard.controller.leader_election import ElectionRefused
from tfyard.controller.lease import LeaseTiming
from tfyard.kube import Access, requests
from tfyard.testing import ControlPlane, Relay, eventually

pytestmark = pytest.mark.cluster

STEADY = LeaseTiming(5, 4, 0.5)
"""Times for tests in which a lease expires, but not before its leader is gone."""
PATIENT = LeaseTiming(60, 50, 0.5)
"""Times for tests in which no lease may be lost, however slow the machine is."""


def through(relay: Relay, access: Access) -> Access:
    return msgspec.structs.replace(access, cluster=msgspec.structs.replace(access.cluster, server=relay.url))


async def test_of_two_candidates_one_leads_and_the_other_does_not(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin, end = control_plane.admin, time.monotonic() + TERMS.lease_duration * 1.5
    async with candidate(admin, namespace, "ada") as ada, candidate(admin, namespace, "bob") as bob:
        while time.monotonic() < end:
            assert not (ada.leadership.is_current() and bob.leadership.is_current())
            await asyncio.sleep(0.01)
        await eventually(lambda: _one_leads(control_plane, namespace, ada, bob))


async def _one_leads(plane: ControlPlane, namespace: str, *candidates: Standing) -> None:
    spec = await stored(plane, namespace)
    leaders = [each.leadership for each in candidates if each.leadership.is_current()]
    assert [leader.candidate.identity for leader in leaders] == [spec["holderIdentity"]]
    assert [leader.term for leader in leaders] == [spec["leaseTransitions"]]
    assert spec["leaseDurationSeconds"] == 3


async def test_a_killed_leader_is_followed_after_its_lease_and_not_before(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    async with candidate(admin, namespace, "ada", STEADY) as ada:
        await ada.leads()
        async with candidate(admin, namespace, "bob", STEADY) as bob:
            await asyncio.sleep(STEADY.retry_period * 2)
            await ada.die()
            renewed = (await stored(control_plane, namespace))["renewTime"]
            await bob.leads()
            spec = await stored(control_plane, namespace)
            assert bob.leadership.term == 1
    assert not ada.leadership.is_current()
    waited = datetime.fromisoformat(spec["acquireTime"]) - datetime.fromisoformat(renewed)
    assert waited.total_seconds() > STEADY.lease_duration - 0.1, "the old one might still have written"
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("bob", 1)


async def test_a_lease_handed_back_is_taken_at_once(control_plane: ControlPlane, namespace: str) -> None:
    admin = control_plane.admin
    async with candidate(admin, namespace, "ada", PATIENT) as ada:
        await ada.leads()
        async with candidate(admin, namespace, "bob", PATIENT) as bob:
            await asyncio.sleep(TERMS.retry_period)
            ada.leadership.release()
            assert not ada.leadership.is_current(), "from the first moment on"
            await ada.running
            await bob.leads(within=PATIENT.lease_duration / 2)
            assert bob.leadership.term == 1
    assert ada.lost == [], "it was not lost, it was given"


async def test_a_standby_that_is_told_to_end_leaves_the_lease_alone(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    async with candidate(admin, namespace, "ada", PATIENT) as ada:
        await ada.leads()
        async with candidate(admin, namespace, "bob", PATIENT) as bob:
            await asyncio.sleep(PATIENT.retry_period)
            bob.leadership.release()
            await bob.running
        assert (await stored(control_plane, namespace))["holderIdentity"] == "ada"
        assert ada.leadership.is_current()


@pytest.mark.long
async def test_a_frozen_leader_that_wakes_up_knows_before_anything_else_that_it_leads_no_longer(
    control_plane: ControlPlane, namespace: str
) -> None:
    script = [sys.executable, "-m", "tests.controller.candidate"]
    frozen = subprocess.Popen(
        [*script, str(control_plane.kubeconfig), namespace, "frozen"], stdout=subprocess.PIPE, text=True
    )
    assert frozen.stdout is not None
    try:
        assert await asyncio.to_thread(frozen.stdout.readline) == "leads\n"
        frozen.send_signal(signal.SIGSTOP)
        async with candidate(control_plane.admin, namespace, "bob") as bob:
            await bob.leads(within=15)
            frozen.send_signal(signal.SIGCONT)
            said = {await asyncio.to_thread(frozen.stdout.readline) for _ in range(2)}
            await asyncio.sleep(TERMS.lease_duration)
            assert bob.leadership.is_current(), "the one that woke up took nothing back"
    finally:
        frozen.kill()
        frozen.wait()
        frozen.stdout.close()
    assert "woke, current: False\n" in said
    assert any(line.startswith("lost: not renewed for 2 s: this process was stopped") for line in said)


async def test_a_leader_without_a_server_stops_leading_and_leads_again_when_it_is_back(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        Relay(control_plane.server) as relay,
        candidate(through(relay, control_plane.admin), namespace, "ada") as ada,
    ):
        await ada.leads()
        relay.freeze()
        await asyncio.sleep(TERMS.renew_deadline)
        assert not ada.leadership.is_current()
        await eventually(lambda: _lost(ada.lost))
        relay.thaw()
        await ada.leads()
        assert ada.leadership.term == 0, "nobody else led in between"


async def _lost(reasons: list[str]) -> None:
    assert len(reasons) == 1
    assert "no answer within" in reasons[0]


async def test_connections_cut_in_the_middle_cost_no_lease(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with (
        Relay(control_plane.server) as relay,
        candidate(through(relay, control_plane.admin), namespace, "ada", PATIENT) as ada,
    ):
        await ada.leads()
        for _ in range(10):
            relay.cut()
            await asyncio.sleep(0.2)
        await keeps_renewing(control_plane, namespace, ada)


async def test_an_apiserver_that_is_back_in_time_costs_no_lease(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    async with candidate(admin, namespace, "ada", PATIENT) as ada:
        await ada.leads()
        async with candidate(admin, namespace, "bob", PATIENT) as bob:
            control_plane.apiserver.kill()
            await asyncio.to_thread(control_plane.start, "kube-apiserver")
            await keeps_renewing(control_plane, namespace, ada)
            assert not bob.leadership.is_current()


async def test_a_label_on_the_lease_costs_no_leadership(control_plane: ControlPlane, namespace: str) -> None:
    path = requests.LEASES.path(namespace, "tfyard-operator")
    async with (
        candidate(control_plane.admin, namespace, "ada", PATIENT) as ada,
        control_plane.client() as client,
    ):
        await ada.leads()
        for number in range(3):
            labels = {"metadata": {"labels": {"touched": str(number)}}}
            await client.send(requests.patch(path, labels))
            await keeps_renewing(control_plane, namespace, ada)
        lease = await client.send(requests.get(path))
    assert lease["metadata"]["labels"] == {"touched": "2"}


async def keeps_renewing(plane: ControlPlane, namespace: str, leader: Standing) -> None:
    """It renews from now on, and never lost anything."""
    before = (await stored(plane, namespace))["renewTime"]

    async def renewed() -> None:
        spec = await stored(plane, namespace)
        assert spec["renewTime"] > before
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == (leader.leadership.candidate.identity, 0)

    await eventually(renewed)
    assert leader.leadership.is_current()
    assert leader.lost == []


async def test_a_lease_deleted_under_its_leader_makes_no_second_one(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin = control_plane.admin
    async with candidate(admin, namespace, "ada", PATIENT) as ada, control_plane.client() as client:
        await ada.leads()
        async with candidate(admin, namespace, "bob", PATIENT) as bob:
            await asyncio.sleep(PATIENT.retry_period * 2)
            await client.send(requests.delete(requests.LEASES.path(namespace, "tfyard-operator")))
            await eventually(lambda: _stored_by(control_plane, namespace, "ada"))
            await ada.leads()
            assert not bob.leadership.is_current()


async def _stored_by(plane: ControlPlane, namespace: str, identity: str) -> None:
    assert (await stored(plane, namespace))["holderIdentity"] == identity


async def test_a_missing_permission_on_the_lease_is_reported_with_the_permissions_that_are_needed(
    control_plane: ControlPlane, namespace: str
) -> None:
    async with candidate(control_plane.access("nobody"), namespace, "nobody") as standing:
        with pytest.raises(ElectionRefused, match=r"get, create, update leases\.coordination"):
            await asyncio.wait_for(standing.running, 90)


async def test_a_missing_namespace_of_the_lease_is_reported(control_plane: ControlPlane) -> None:
    async with candidate(control_plane.admin, "nowhere", "ada") as standing:
        with pytest.raises(ElectionRefused, match="the namespace nowhere, which must exist"):
            await asyncio.wait_for(standing.running, 90)


@pytest.mark.long
async def test_with_the_default_terms_a_killed_leader_is_followed_within_15_seconds(
    control_plane: ControlPlane, namespace: str
) -> None:
    admin, terms = control_plane.admin, LeaseTiming()
    async with candidate(admin, namespace, "ada", terms) as ada:
        await ada.leads()
        async with candidate(admin, namespace, "bob", terms) as bob:
            await asyncio.sleep(5)
            await ada.die()
            await bob.leads(within=15)


ABSURD = {
    "holderIdentity": "dead",
    "leaseDurationSeconds": 100_000,
    "renewTime": "2026-01-01T00:00:00.000000Z",
}


async def hold_absurdly(plane: ControlPlane, namespace: str) -> None:
    metadata = {"name": "tfyard-operator", "namespace": namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": ABSURD}
    async with plane.client() as client:
        await client.send(requests.create(requests.LEASES.path(namespace), lease))


async def test_a_dead_holder_with_an_absurd_duration_is_reported_and_followed(
    control_plane: ControlPlane,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("tfyard.controller.lease.LONGEST_PROMISE", 4.0)
    monkeypatch.setattr("tfyard.controller.leader_election.NO_LEADER", 1.0)
    await hold_absurdly(control_plane, namespace)
    async with candidate(control_plane.admin, namespace, "bob") as bob:
        while not caplog.records:
            assert not bob.leadership.is_current()
            await asyncio.sleep(0.1)
        assert bob.leadership.seconds_without_leader() > 1.0
        await bob.leads()
        assert bob.leadership.seconds_without_leader() == 0.0
    assert [record.message for record in caplog.records] == ["no leader for 1 s: the lease does not change"]


async def test_deleting_a_lease_with_an_absurd_duration_helps(
    control_plane: ControlPlane, namespace: str
) -> None:
    await hold_absurdly(control_plane, namespace)
    async with candidate(control_plane.admin, namespace, "bob") as bob:
        await asyncio.sleep(TERMS.lease_duration)
        assert not bob.leadership.is_current()
        async with control_plane.client() as client:
            await client.send(requests.delete(requests.LEASES.path(namespace, "tfyard-operator")))
        await bob.leads(within=30)


async def test_a_lease_with_the_greatest_number_of_transitions_can_be_taken(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Users may write it, and the server refuses the number after it."""
    spec = {"holderIdentity": "", "leaseTransitions": 2**31 - 1}
    lease = {"metadata": {"name": "tfyard-operator", "namespace": namespace}, "spec": spec}
    async with control_plane.client() as client:
        await client.send(requests.create(requests.LEASES.path(namespace), lease))
    async with candidate(control_plane.admin, namespace, "bob") as bob:
        await bob.leads()
        assert bob.leadership.term == 0
