"""kubectl's JSONPath; tests/cli/test_get.py compares it with the real kubectl."""

from typing import Any

import pytest

from tfyard.errors import Usage
from tfyard.overview import jsonpath

JOB: dict[str, Any] = {
    "metadata": {"name": "mnist", "labels": {"app.kubernetes.io/name": "train"}},
    "status": {
        "restarts": 0,
        "conditions": [
            {"type": "Created", "status": "True"},
            {"type": "Running", "status": "False", "n": 3},
            {"type": "Failed", "status": "True", "n": 7},
        ],
    },
}


def render(template: str, data: Any = JOB) -> str:
    return jsonpath.render(jsonpath.parse(template), data)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.metadata.name}", "mnist"),
        ("{$.metadata.name}", "mnist"),
        ("name={.metadata.name}!", "name=mnist!"),
        ('{.metadata.name}{"\\n"}', "mnist\n"),
        (r"{.metadata.labels.app\.kubernetes\.io/name}", "train"),
        ("{.metadata.labels['app.kubernetes.io/name']}", "train"),
        ("{.metadata['name','labels']}", 'mnist {"app.kubernetes.io/name":"train"}'),
        ("{.status.restarts}", "0"),
        ("{.status.conditions[0].type}", "Created"),
        ("{.status.conditions[-1:].type}", "Failed"),
        ("{.status.conditions[-1].type}", "Failed"),
        ("{.status.conditions[0,2].type}", "Created Failed"),
        ("{.status.conditions[*].type}", "Created Running Failed"),
        ("{.status.conditions[::2].type}", "Created Failed"),
        ('{.status.conditions[?(@.type=="Running")].status}', "False"),
        ('{.status.conditions[?(@.status!="True")].type}', "Running"),
        ("{.status.conditions[?(@.n>3)].type}", "Failed"),
        ("{.status.conditions[?(@.n)].type}", "Running Failed"),
        ("{..type}", "Created Running Failed"),
        ("{.nothing.here}", ""),
        ("{.metadata.name.deeper[0]}", ""),
        (
            '{range .status.conditions[*]}{.type}{"="}{.status}{";"}{end}',
            "Created=True;Running=False;Failed=True;",
        ),
        ("plain", "plain"),
        ("{@.metadata.name}", "mnist"),
    ],
)
def test_a_template_is_rendered_as_kubectl_does(template: str, text: str) -> None:
    assert render(template) == text


@pytest.mark.parametrize(
    "template",
    ["{.a", "a}", "{}", "{a.b}", "{.a[}", "{.a[x]}", "{range .a}x", "{end}", "{.a[?(@.b==nope)]}", "{.a..}"],
)
def test_invalid_jsonpath_is_refused_in_one_line(template: str) -> None:
    with pytest.raises(Usage, match="jsonpath"):
        jsonpath.parse(template)


def test_a_path_needs_no_braces_where_nothing_else_can_stand() -> None:
    for text in (".metadata.name", "{.metadata.name}", "metadata.name"):
        assert jsonpath.parse_path(text).find(JOB, JOB) == ["mnist"]


def test_a_comparison_of_a_number_and_a_text_holds_for_none() -> None:
    assert render('{.status.conditions[?(@.n>"x")].type}') == ""
