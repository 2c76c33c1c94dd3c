"""Sweeps of a cluster as places, on the real API server."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from tfyard.errors import NotPossible
from tfyard.kube import requests
from tfyard.kube.sync import SyncClient
from tfyard.model.sweep import Choice, Objective, SweepSpec
from tfyard.remote.sweeps import store
from tfyard.sdk.sweep_on_cluster import SweepOnCluster
from tfyard.sweeps.decide import begun
from tfyard.testing import ControlPlane

pytestmark = pytest.mark.cluster
SPEC = SweepSpec(name="s", over={"lr": Choice((1, 2))}, objective=Objective("auc", is_max=True), trials=2)


def test_a_sweep_that_is_about_to_stop_is_not_resumed_and_its_driver_is_not_called_silent(
    control_plane: ControlPlane, namespace: str
) -> None:
    now, access = datetime.now(UTC), replace(control_plane.admin, namespace=namespace)
    wanted = store.manifest(begun(SPEC, now), namespace, "", {})
    wanted["metadata"]["annotations"] = {**store.driven("job:pod:1", now), store.STOP: "true"}
    with SyncClient(access) as client:
        made = client.send(requests.create(requests.CONFIG_MAPS.path(namespace), wanted), store.VIEWS.one)
    with pytest.raises(NotPossible, match="s is about to stop; `tfyard resume` goes on when it has stopped"):
        SweepOnCluster(access, made, print).resume()
