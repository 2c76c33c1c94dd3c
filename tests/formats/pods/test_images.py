"""Images that no node accepts are errors, with the fix."""

import pytest

from tfyard.formats.declarations.reading import Notes
from tfyard.formats.pods import images

HEX = "0123456789abcdef" * 4


def fixes(image: str) -> list[str]:
    notes = Notes()
    images.check(image, ("image",), notes)
    assert all(problem.message == images.NOT_A_NAME for problem in notes.problems)
    return [problem.fix for problem in notes.problems]


@pytest.mark.parametrize(
    "image",
    [
        "a",
        "tensorflow/tensorflow:2.21.0-gpu",
        "registry:5000/team/a_b/c__d/e--f.g:V1_x.y-z",
        "localhost/a",
        "Registry.example/a",
        "[2001:db8::1]:5000/a",
        f"a@sha256:{HEX}",
        f"a:1@sha512:{HEX}{HEX}",
    ],
)
def test_the_names_that_nodes_accept(image: str) -> None:
    assert fixes(image) == []


@pytest.mark.parametrize(
    ("image", "fix"),
    [
        ("wbuchwalter/<SAMPLE IMAGE>", "replace <SAMPLE IMAGE> with a name of your own"),
        ("<DOCKER_USERNAME>/tf-mnist:gpu", "replace <DOCKER_USERNAME> with a name of your own"),
        ("${DOCKER_USERNAME}/tf-mnist", "replace ${DOCKER_USERNAME} with a name of your own"),
        ("team/Mnist:V1", 'for example "team/mnist:v1"'),
        ("https://example.com/a:1", 'for example "example.com/a:1"'),
        (" a:1 ", 'for example "a:1"'),
        ("a:", "write REGISTRY/NAME:TAG, as in tensorflow/tensorflow:2.21.0"),
        ("a b", "write REGISTRY/NAME:TAG"),
        ("a//b", "write REGISTRY/NAME:TAG"),
        ("a:1:2", "write REGISTRY/NAME:TAG"),
        ("a@sha256:12", "write REGISTRY/NAME:TAG"),
        (HEX, "write REGISTRY/NAME:TAG"),
        ("a:" + "x" * 129, "write REGISTRY/NAME:TAG"),
        ("a" * 100_000, "write REGISTRY/NAME:TAG"),
        ("a-" * 250 + "!", "write REGISTRY/NAME:TAG"),
    ],
)
def test_the_names_that_nodes_refuse(image: str, fix: str) -> None:
    (proposal,) = fixes(image)
    assert proposal.startswith(fix)
