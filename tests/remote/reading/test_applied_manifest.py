"""A job as it was given."""

from tfyard.remote.reading.applied_manifest import LAST_APPLIED, last_applied


def test_a_note_of_kubectl_that_was_edited_is_not_taken_for_the_applied_manifest() -> None:
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: "{"}}}) is None
