"""Parts of Kubernetes objects."""

from datetime import UTC, datetime, timedelta

from tfyard.views.metadata import ObjectMeta
from tfyard.views.objects import EventView

AT = datetime(2026, 11, 16, 4, tzinfo=UTC)


def test_events_are_sorted_by_seconds_and_then_as_they_were_stored() -> None:
    """A scheduler writes times with microseconds, a kubelet without."""
    scheduled = EventView(metadata=ObjectMeta(resource_version="9"), event_time=AT + timedelta(seconds=0.6))
    mounted = EventView(metadata=ObjectMeta(resource_version="10"), last_timestamp=AT)
    later = EventView(metadata=ObjectMeta(resource_version="8"), last_timestamp=AT + timedelta(seconds=1))
    timeless = EventView()
    ordered = sorted([later, mounted, scheduled, timeless], key=lambda event: event.order)
    assert ordered == [timeless, scheduled, mounted, later]
