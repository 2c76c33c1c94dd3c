"""Without networks of their own, the tasks of a job find each other on ports of this machine."""

import itertools

from tfyard.dev.shared_network import LoopbackPorts

SERVICES = {"train-worker-0.ml", "train-worker-1.ml", "ring.ml", "web.default"}


def ports() -> LoopbackPorts:
    return LoopbackPorts(itertools.count(20_000).__next__)


def test_every_task_gets_the_same_ports_whatever_form_of_a_name_it_uses() -> None:
    table = ports()
    config = '{"cluster": {"worker": ["train-worker-0.ml.svc:2222", "train-worker-1.ml.svc:2222"]}}'
    assert table.rewrite(config, "ml", SERVICES) == (
        '{"cluster": {"worker": ["127.0.0.1:20000", "127.0.0.1:20001"]}}'
    )
    flag = "--worker_hosts=train-worker-0:2222,train-worker-1.ml.svc.cluster.local:2222"
    assert table.rewrite(flag, "ml", SERVICES) == "--worker_hosts=127.0.0.1:20000,127.0.0.1:20001"
    assert table.replaced == {"train-worker-0.ml:2222": 20_000, "train-worker-1.ml:2222": 20_001}


def test_pods_below_a_headless_service_and_urls_are_pairs_too() -> None:
    table = ports()
    assert table.rewrite("train-0.ring:2222 train-0.ring.ml.svc:2222", "ml", SERVICES) == (
        "127.0.0.1:20000 127.0.0.1:20000"
    )
    assert table.rewrite("http://web.default:80/a:1", "ml", SERVICES) == "http://127.0.0.1:20001/a:1"
    assert table.rewrite("grpc://ring:2222", "ml", SERVICES) == "grpc://127.0.0.1:20002"


def test_another_port_of_the_same_host_is_another_pair() -> None:
    table = ports()
    assert table.rewrite("ring:1 ring:2", "ml", SERVICES) == "127.0.0.1:20000 127.0.0.1:20001"


def test_what_is_no_name_of_the_cluster_stays() -> None:
    table = ports()
    for text in (
        "https://pypi.org:443/simple",
        "web:80",  # a Service of another namespace
        "10.0.0.1:2222",
        "python:3.11",
        "12:30:45",
        "my-train-worker-0:2222x",
        "user@train-worker-0:2222",
        "ring:123456",
        "/data/ring",
    ):
        assert table.rewrite(text, "ml", SERVICES) == text
    assert table.replaced == {}
