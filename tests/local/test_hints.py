"""What is said about a failed task whose log has a known error."""

import pytest

from tfyard.local.hints import hint
from tfyard.local.interpreter import Interpreter

PYTHON = Interpreter("/usr/bin/python", "the first on PATH")
TF1 = "the program is written for TensorFlow 1: run it with --tf1 (job file: `tf1: true`)"
TWICE = (
    "AbortedError: From /job:ps/replica:0/task:0:\nThe same RunGraph (Worker) request was received twice. x"
)


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (
            "ModuleNotFoundError: No module named 'tensorflow'",
            "python is /usr/bin/python (the first",
        ),
        ("ModuleNotFoundError: No module named 'tensorflow.examples.tutorials'", TF1),
        ("ModuleNotFoundError: No module named 'tensorflow.contrib'", TF1),
        ("AttributeError: module 'tensorflow' has no attribute 'app'", TF1),
        ("AttributeError: module 'tensorflow' has no attribute 'konstant'", ""),
        (TWICE, "TensorFlow numbered two steps alike"),
        ("ValueError: bad rate", ""),
    ],
)
def test_a_known_error_gets_its_fix(log: str, expected: str) -> None:
    text = hint(PYTHON, f"Traceback (most recent call last):\n{log}\n", tf1=False)
    assert text.startswith(expected)
    assert bool(text) == bool(expected)


def test_a_program_that_has_tensorflow_1_already_is_not_told_to_ask_for_it() -> None:
    assert hint(PYTHON, "AttributeError: module 'tensorflow' has no attribute 'app'", tf1=True) == ""
