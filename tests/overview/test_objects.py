"""Parts of Kubernetes objects."""

from datetime import UTC, datetime, timedelta

from tfyard.overview.objects import Event, Meta

AT = datetime(2026, 11, 16, 4, tzinfo=UTC)


def test_events_are_sorted_by_seconds_and_then_as_they_were_stored() -> None:
    """A scheduler tells the time with microseconds, a kubelet cuts them off."""
    scheduled = Event(metadata=Meta(resource_version="9"), event_time=AT + timedelta(seconds=0.6))
    mounted = Event(metadata=Meta(resource_version="10"), last_timestamp=AT)
    later = Event(metadata=Meta(resource_version="8"), last_timestamp=AT + timedelta(seconds=1))
    timeless = Event()
    found = sorted([later, mounted, scheduled, timeless], key=lambda event: event.order)
    assert found == [timeless, scheduled, mounted, later]
