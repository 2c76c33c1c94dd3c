"""Times as the API's objects hold them: in UTC, with a Z."""

from datetime import UTC, datetime


def timestamp(at: datetime) -> str:
    """Kubernetes' Time: whole seconds."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def micro_time(at: datetime) -> str:
    """Kubernetes' MicroTime, of leases: it refuses anything but six digits."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
