"""A pod finds others by the names that a cluster's DNS would answer."""

import socket
from pathlib import Path

from tfyard.node.hosts import HostsFiles, Name, hostname

WORKER = {
    "metadata": {"name": "train-0-x7k2p", "namespace": "ml", "uid": "uid"},
    "spec": {
        "hostname": "train-0",
        "subdomain": "train",
        "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["db", "db.example"]}],
    },
}
NAMES = [
    Name("train", "ml", ("10.244.0.5", "10.244.0.6")),
    Name("train-1.train", "ml", ("10.244.0.6",)),
    Name("kubernetes", "default", ("10.96.0.1",)),
]


def names_in(text: str) -> dict[str, list[str]]:
    """Name -> addresses, as the C library reads the file."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        for name in names:
            found.setdefault(name, []).append(address)
    return found


def test_names_are_short_in_their_own_namespace_only(tmp_path: Path) -> None:
    files, path = HostsFiles(), tmp_path / "hosts"
    files.set_names(NAMES)
    files.add_pod(WORKER, "10.244.0.5", path)
    found = names_in(path.read_text())
    for form in ("train", "train.ml", "train.ml.svc", "train.ml.svc.cluster.local"):
        assert found[form] == ["10.244.0.5", "10.244.0.6"]
    for form in ("train-1.train", "train-1.train.ml.svc.cluster.local"):
        assert found[form] == ["10.244.0.6"]
    assert found["kubernetes.default.svc"] == ["10.96.0.1"]
    assert "kubernetes" not in found
    assert found["train-0"] == found["train-0.train.ml.svc.cluster.local"] == ["10.244.0.5"]
    assert found["db"] == found["db.example"] == ["192.0.2.7"]
    assert found["localhost"] == ["127.0.0.1", "::1"]


def test_the_file_stays_the_same_file_and_is_written_only_when_names_change(tmp_path: Path) -> None:
    files, path = HostsFiles(), tmp_path / "hosts"
    files.add_pod(WORKER, "10.244.0.5", path)
    empty, inode = path.read_text(), path.stat().st_ino
    files.set_names(NAMES)
    files.set_names(reversed(NAMES))
    assert files.writes == 2
    files.set_names([])
    assert (path.read_text(), path.stat().st_ino, files.writes) == (empty, inode, 3)
    files.remove("uid")
    files.set_names(NAMES)
    assert files.writes == 3


def test_the_file_of_a_pod_that_has_just_gone_is_not_made_again(tmp_path: Path) -> None:
    files, path = HostsFiles(), tmp_path / "hosts"
    files.add_pod(WORKER, "10.244.0.5", path)
    path.unlink()
    files.set_names(NAMES)
    assert not path.exists()


def test_a_name_is_looked_up_as_the_pod_that_asks_sees_it(tmp_path: Path) -> None:
    files = HostsFiles()
    files.set_names(NAMES)
    files.add_pod(WORKER, "10.244.0.5", tmp_path / "hosts")
    for form in (
        "train-1.train",
        "train-1.train.ml",
        "train-1.train.ml.svc",
        "train-1.train.ml.svc.cluster.local.",
    ):
        assert files.addresses(form, asked_by="10.244.0.5") == ("10.244.0.6",)
    assert files.addresses("train", asked_by="10.244.0.99") == ()
    assert files.addresses("pypi.org", asked_by="10.244.0.5") == ()


def test_a_thousand_names_are_a_file_that_every_resolver_reads(tmp_path: Path) -> None:
    files, path = HostsFiles(), tmp_path / "hosts"
    files.add_pod(WORKER, "10.244.0.5", path)
    files.set_names(Name(f"worker-{n}", "ml", (f"10.244.{n >> 8}.{n & 255}",)) for n in range(1000))
    assert files.writes == 2
    assert names_in(path.read_text())["worker-999.ml.svc"] == ["10.244.3.231"]
    assert path.stat().st_size < 100 << 10
    assert max(map(len, path.read_text().splitlines())) < socket.NI_MAXHOST


def test_a_pod_with_a_long_name_has_a_hostname_that_linux_accepts() -> None:
    pod = {"metadata": {"name": f"{'a' * 62}-worker-0"}, "spec": {}}
    assert hostname(pod) == "a" * 62
