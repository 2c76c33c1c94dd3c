"""Times as the API takes them."""

from datetime import datetime, timedelta, timezone

from tfyard.kube.times import micro_time, timestamp


def test_times_are_written_in_utc_whatever_zone_they_are_in() -> None:
    at = datetime(2026, 1, 1, 1, 30, 0, 5000, tzinfo=timezone(timedelta(hours=2)))
    assert (timestamp(at), micro_time(at)) == ("2025-12-31T23:30:00Z", "2025-12-31T23:30:00.005000Z")
