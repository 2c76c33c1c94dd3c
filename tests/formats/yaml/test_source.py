import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.reading import only, problem, problems, refusal
from tfyard.formats.yaml import scalars, source
from tfyard.model.problem import Position, Problem

MANIFEST = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, labels: {app.kubernetes.io/name: "mnist"}}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 2
      template: &template
        spec:
          containers:
          - name: tensorflow
            image: 'example/mnist:1'   # the image
            env:
            - {name: FLAG, value: on}
            - name: LONG
              value: >-
                folded
                text
    PS:
      template: *template
"""
WORKER = ("spec", "tfReplicaSpecs", "Worker")


def test_a_manifest_becomes_plain_data() -> None:
    data = only(MANIFEST).data
    container = data["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["containers"][0]
    assert container["image"] == "example/mnist:1"
    assert container["env"][1] == {"name": "LONG", "value": "folded text"}
    assert data == yaml.load(MANIFEST, Loader=yaml.CSafeLoader)


def test_documents_are_numbered_and_empty_ones_left_out() -> None:
    documents = source.read("---\n---\na: 1\n---\n# nothing\n---\n- 2\n...\n", "x.yaml")
    assert [(document.index, document.name, document.data) for document in documents] == [
        (0, "x.yaml", {"a": 1}),
        (1, "x.yaml", [2]),
    ]
    assert source.read("") == ()


def test_an_explicit_null_is_a_document() -> None:
    assert only("~").data is None


def test_json_with_tabs_and_escapes_is_read_as_it_is() -> None:
    text = '{\n\t"kind": "List",\n\t"items": [{"a": "\\u003cb\\/\\n"}, 1.5e3, true, null]\n}'
    assert only(text).data == json.loads(text)


def test_a_byte_order_mark_is_not_part_of_the_first_key() -> None:
    assert only(b"\xef\xbb\xbfa: 1").data == {"a": 1}
    assert only("\ufeffa: 1").position(("a",)) == Position(1, 4)


@pytest.mark.parametrize(
    ("path", "line", "column", "key_line", "key_column"),
    [
        (("kind",), 2, 7, 2, 1),
        (("metadata", "labels", "app.kubernetes.io/name"), 3, 58, 3, 34),
        ((*WORKER, "replicas"), 7, 17, 7, 7),
        ((*WORKER, "template", "spec", "containers", 0), 11, 13, 11, 13),
        ((*WORKER, "template", "spec", "containers", 0, "image"), 12, 20, 12, 13),
        (("spec", "tfReplicaSpecs", "PS", "template"), 20, 17, 20, 7),
        (("spec", "tfReplicaSpecs", "PS", "template", "spec", "containers", 0, "image"), 12, 20, 12, 13),
        ((*WORKER, "replicas", "deeper", 3), 7, 17, 7, 7),
        ((*WORKER, "template", "spec", "containers", 7, "image"), 11, 11, 10, 11),
        ((), 1, 1, 1, 1),
    ],
)
def test_every_value_and_key_knows_its_position_or_that_of_its_nearest_parent(
    path: tuple[str | int, ...], line: int, column: int, key_line: int, key_column: int
) -> None:
    document = only(MANIFEST)
    assert document.position(path) == Position(line, column)
    assert document.position(path, key=True) == Position(key_line, key_column)


def test_lines_are_counted_as_the_parser_counts_them() -> None:
    document = only("a: 1\r\nb: 2\rc: 3\nd: é中\U0001f600 x\ne: 5")
    assert document.position(("c",)) == Position(3, 4)
    assert [document.source_line(line) for line in (0, 1, 2, 4, 5, 6)] == [
        "",
        "a: 1",
        "b: 2",
        "d: é中😀 x",
        "e: 5",
        "",
    ]


def test_scalars_keep_the_text_that_was_written() -> None:
    document = only("[on, 1:30, 010, 1e3, 'on', ~, 0x1F, , {}]".replace(", ,", ", null,"))
    texts = [document.text((index,)) for index in range(9)]
    assert texts == ["on", "1:30", "010", "1e3", "on", "~", "0x1F", "null", None]
    assert document.text((12,)) is None


def test_merge_keys_fill_in_and_explicit_keys_win() -> None:
    text = "base: &b {x: 1, z: 2}\nmore: &m {z: 9, w: 4}\nall: {z: 3, <<: [*b, *m]}\none:\n  <<: *m\n  v: 5\n"
    document = only(text)
    assert document.data["all"] == {"x": 1, "z": 3, "w": 4}
    assert document.data["one"] == {"z": 9, "w": 4, "v": 5}
    assert document.data["base"] == {"x": 1, "z": 2}
    assert document.position(("all", "x")) == Position(1, 14)


def test_a_quoted_merge_key_is_a_plain_name() -> None:
    assert only('"<<": 1').data == {"<<": 1}


def test_duplicate_keys_name_both_positions() -> None:
    duplicate = problem("a: 1\nb:\n  c: 1\n  'c': 2\n")
    assert (duplicate.path, duplicate.position, duplicate.fix) == (
        ("b", "c"),
        Position(4, 3),
        "remove one of the two",
    )
    assert "line 3, column 3" in duplicate.message


def test_every_problem_is_reported_at_once_also_before_a_syntax_error() -> None:
    reported = problems("on: 1\na: !x 2\na: 3\n---\nb: *c\nd: [\n")
    assert [(each.position.line, each.position.column) for each in reported if each.position] == [
        *[(1, 1), (2, 4), (3, 1), (5, 4)],
        (7, 1),
    ]


@pytest.mark.parametrize("key", ["on", "yes", "1", "1.5", "~", "null", "y"])
def test_keys_that_are_not_text_are_to_be_quoted(key: str) -> None:
    refused = problem(f"{key}: 1")
    assert (refused.fix, refused.position) == ("quote it", Position(1, 1))
    assert key in refused.message
    assert only(f'"{key}": 1').data == {key: 1}


def test_bytes_that_are_not_utf8_name_their_offset() -> None:
    assert "0xff at offset 8" in problem(b"a: 1\nb: \xff").message
    assert "UTF-16" in problem("a: 1".encode("utf-16")).message
    assert "U+0000" in problem("a: 1".encode("utf-16-le")).message


def test_locating_points_at_values_where_there_is_one_else_at_keys_and_sorts_by_position() -> None:
    document = only("a:\n  b: 1\n")
    placed = Problem(("a",), "kept", position=Position(9, 9))
    located = source.locate(
        [Problem(("a", "b"), "value", value=1), Problem(("a", "b"), "field"), placed], document
    )
    positions = {"field": Position(2, 3), "value": Position(2, 6), "kept": Position(9, 9)}
    assert [(each.message, each.position) for each in located] == list(positions.items())


@pytest.mark.parametrize("text", [MANIFEST, "a:\n\tb: 1", "a: *", "a: 'b", "a: {{ b }}", "a: x\0"])
def test_the_slow_parser_says_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = refusal(text) or only(text).data
    monkeypatch.setattr(source, "_loader", lambda: yaml.SafeLoader)
    assert (refusal(text) or only(text).data) == fast


def loads_or_is_refused(text: str | bytes) -> None:
    """Text that loads is plain data, so JSON can write it; a refusal has a message."""
    assert all(problem.message for problem in refusal(text))


@given(st.binary(max_size=200))
def test_any_bytes_load_or_are_refused(data: bytes) -> None:
    loads_or_is_refused(data)


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_loads_or_is_refused(text: str) -> None:
    loads_or_is_refused(text)


YAML_PIECES = [
    "a",
    "b",
    ": ",
    "- ",
    "\n",
    "  ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&x ",
    "*x",
    "<<: ",
    "!!int ",
    "? ",
    "'",
    '"',
]
YAML_PIECES += [
    "|",
    ">",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "1",
    "0x",
    "_",
    ".",
    "\t",
    "~",
    "\\",
    "on",
    "\r",
    "\x85",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(YAML_PIECES), max_size=40).map("".join))
def test_anything_that_looks_like_yaml_loads_or_is_refused(text: str) -> None:
    loads_or_is_refused(text)


@given(st.integers(0, len(MANIFEST)), st.integers(0, 8), st.sampled_from(YAML_PIECES) | st.text(max_size=4))
def test_a_damaged_manifest_loads_or_is_refused(start: int, length: int, piece: str) -> None:
    loads_or_is_refused(MANIFEST[:start] + piece + MANIFEST[start + length :])


# PyYAML leaves unquoted some words that kubectl's loader takes for numbers or bools, such as 1e3.
TEXTS = st.text(max_size=20).filter(lambda text: isinstance(scalars.resolve(text), str))
LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | TEXTS
DATA = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(TEXTS, DATA, max_size=4))
def test_plain_data_survive_a_round_trip_through_yaml(data: dict[str, Any]) -> None:
    assert only(yaml.safe_dump(data)).data == data
    assert only(yaml.safe_dump(data, default_flow_style=True)).data == data


ANY_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=15,
)


@given(st.dictionaries(st.text(max_size=20), ANY_DATA, max_size=4), st.sampled_from([None, 1, "\t"]))
def test_whatever_json_says_is_read_as_json(data: dict[str, Any], indent: Any) -> None:
    text = json.dumps(data, indent=indent)
    assert only(text).data == data


def test_two_escapes_for_one_character_are_joined_unless_a_backslash_is_meant() -> None:
    assert only(r'{"a": "\ud83d\ude00"}').data == {"a": "😀"}
    assert only(r'{"a": "\\\ud83d\ude00"}').data == {"a": "\\😀"}
    assert only(r'{"a": "\\ud83d\\ude00"}').data == {"a": r"\ud83d\ude00"}
    assert "invalid Unicode escape" in problem(r'{"a": "\ud83d"}').message
