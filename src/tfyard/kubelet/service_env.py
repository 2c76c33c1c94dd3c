"""The variables that every container has for the Services of its namespace. Pure."""

from collections.abc import Iterable

from tfyard.model import Manifest


def of_services(services: Iterable[Manifest]) -> dict[str, str]:
    env: dict[str, str] = {}
    for service in services:
        address = service["spec"].get("clusterIP") or "None"
        ports = service["spec"].get("ports") or []
        if address != "None" and ports:
            env |= of_service(service["metadata"]["name"], address, ports)
    return env


def of_service(name: str, address: str, ports: list[Manifest]) -> dict[str, str]:
    """Its address and ports, and the forms that links of Docker had."""
    prefix, first = _upper(name), ports[0]
    env = {f"{prefix}_SERVICE_HOST": address, f"{prefix}_SERVICE_PORT": str(first["port"])}
    env |= {f"{prefix}_SERVICE_PORT_{_upper(p['name'])}": str(p["port"]) for p in ports if p.get("name")}
    env[f"{prefix}_PORT"] = f"{_protocol(first)}://{address}:{first['port']}"
    for port in ports:
        link = f"{prefix}_PORT_{port['port']}_{_protocol(port).upper()}"
        env[link] = f"{_protocol(port)}://{address}:{port['port']}"
        env |= {f"{link}_PROTO": _protocol(port), f"{link}_PORT": str(port["port"]), f"{link}_ADDR": address}
    return env


def _protocol(port: Manifest) -> str:
    return str(port.get("protocol") or "TCP").lower()


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
