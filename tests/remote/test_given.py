"""A job as it was given."""

from tfyard.remote.given import LAST_APPLIED, given


def test_a_note_of_kubectl_that_was_edited_is_not_taken_for_the_applied_manifest() -> None:
    assert given({"metadata": {"annotations": {LAST_APPLIED: "{"}}}) is None
