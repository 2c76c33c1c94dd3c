import msgspec
import pytest

from tfyard import errors
from tfyard.model.problem import Position, Problem, format_path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec", "replicas"), "spec.replicas"),
        (
            ("spec", "tfReplicaSpecs", "Worker", "template", "spec", "containers", 0, "image"),
            "spec.tfReplicaSpecs[Worker].template.spec.containers[0].image",
        ),
        (("metadata", "labels", "app.kubernetes.io/name"), "metadata.labels[app.kubernetes.io/name]"),
        (("data", "two words"), "data[two words]"),
        ((0, "kind"), "[0].kind"),
        (("a-b", "$patch"), "a-b.$patch"),
        (("$setElementOrder/env",), "[$setElementOrder/env]"),
    ],
)
def test_a_path_is_written_as_the_api_server_writes_it(path: tuple[str | int, ...], text: str) -> None:
    assert format_path(path) == text


def test_a_problem_tells_no_value_from_the_value_null() -> None:
    assert Problem(("a",), "wrong").value is msgspec.UNSET
    assert Problem(("a",), "wrong", value=None).value is None


def test_problems_are_equal_by_content_and_cannot_be_changed() -> None:
    problem = Problem(("a",), "wrong", position=Position(1, 2))
    assert problem == Problem(("a",), "wrong", position=Position(1, 2))
    with pytest.raises(AttributeError):
        problem.message = "right"


def test_errors_carry_their_exit_code_and_invalid_every_problem() -> None:
    invalid = errors.Invalid([Problem(("a",), "no"), Problem(("b",), "never")])
    assert (errors.TfyardError.exit_code, errors.Invalid.exit_code, errors.Usage.exit_code) == (1, 1, 2)
    assert [problem.path for problem in invalid.problems] == [("a",), ("b",)]
    assert str(invalid) == "a: no\nb: never"
