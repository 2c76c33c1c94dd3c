"""What pods use, as the API tells it."""

from tfyard.kubelet.sources import services_env


def test_services_are_told_by_variables_and_headless_ones_are_not() -> None:
    ports = [{"name": "grpc", "port": 2222}]
    services = [
        {"metadata": {"name": "my-db"}, "spec": {"clusterIP": "10.96.0.7", "ports": ports}},
        {"metadata": {"name": "headless"}, "spec": {"clusterIP": "None", "ports": ports}},
    ]
    env = services_env(services)
    assert env["MY_DB_SERVICE_HOST"] == "10.96.0.7"
    assert env["MY_DB_SERVICE_PORT"] == env["MY_DB_SERVICE_PORT_GRPC"] == "2222"
    assert env["MY_DB_PORT"] == "tcp://10.96.0.7:2222"
    assert not [name for name in env if name.startswith("HEADLESS")]
