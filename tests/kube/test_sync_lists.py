"""Lists and watches by the synchronous client, on the real apiserver."""

import time

import msgspec
import pytest

from tfyard.kube import Changed, Kind, Removed, Snapshot, requests, sync_lists
from tfyard.kube.decoding import decode
from tfyard.kube.sync import ANYTHING, SyncClient
from tfyard.testing import ControlPlane, builders


class Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class Thing(msgspec.Struct, frozen=True):
    metadata: Meta


THINGS = Kind(Thing)


@pytest.mark.cluster
def test_a_watch_outlives_quiet_times_and_restarts_of_the_server(
    control_plane: ControlPlane, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync_lists, "PAGE", "1")
    monkeypatch.setattr(sync_lists, "ONE_WATCH", 1.0)
    path = requests.CONFIG_MAPS.path(namespace)

    def create(name: str) -> None:
        with SyncClient(control_plane.admin) as other:
            other.send(requests.create(path, builders.config_map(name)))

    create("a")
    create("b")
    with SyncClient(control_plane.admin) as client:
        assert len(sync_lists.pages(client, path)) == 2
        seen = sync_lists.watch(client, THINGS, path, deadline=time.monotonic() + 300)
        first = next(seen)
        # The client's own timeout is shorter than a watch: it is for answers that do not begin.
        monkeypatch.setattr(client, "_timeout", 0.9)
        assert isinstance(first, Snapshot)
        assert [each.metadata.name for each in first.items] == ["a", "b"]
        create("c")
        assert _named(next(seen)) == (Changed, "c")
        time.sleep(1.5)  # that watch is over by now
        create("d")
        assert _named(next(seen)) == (Changed, "d")
        control_plane.restart("kube-apiserver")
        with SyncClient(control_plane.admin) as other:
            other.send(requests.delete(requests.CONFIG_MAPS.path(namespace, "a")))
        after = next(seen)  # a new list, if the new server does not know the old one's versions
        names = [each.metadata.name for each in after.items] if isinstance(after, Snapshot) else _named(after)
        assert names in (["b", "c", "d"], (Removed, "a"))


@pytest.mark.cluster
def test_a_watch_ends_at_its_deadline(control_plane: ControlPlane, namespace: str) -> None:
    with SyncClient(control_plane.admin) as client:
        path = requests.CONFIG_MAPS.path(namespace)
        seen = list(sync_lists.watch(client, THINGS, path, deadline=time.monotonic() + 0.5))
        assert [type(each) for each in seen] == [Snapshot]
        assert decode(ANYTHING, sync_lists.pages(client, path)[0])["kind"] == "ConfigMapList"


def _named(event: object) -> tuple[type, str]:
    assert isinstance(event, Changed | Removed)
    return type(event), event.object.metadata.name
