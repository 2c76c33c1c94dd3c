import json
import math
import tracemalloc
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tfyard import errors
from tfyard.formats import compose, scalars, source
from tfyard.model.problem import Place, Problem

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


def only(text: str | bytes) -> source.Document:
    (document,) = source.read(text, "job.yaml")
    return document


def value(text: str) -> Any:
    return only(f"v: {text}\n").data["v"]


def problems(text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(errors.Invalid) as caught:
        source.read(text)
    return caught.value.problems


def problem(text: str | bytes) -> Problem:
    (found,) = problems(text)
    return found


def peak_bytes(text: str | bytes) -> int:
    """What reading costs beyond the text itself, refused or not."""
    tracemalloc.start()
    try:
        source.read(text)
    except errors.Invalid:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak


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
    assert only("\ufeffa: 1").place(("a",)) == Place(1, 4)


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
def test_every_value_and_key_knows_its_place_or_that_of_its_nearest_parent(
    path: tuple[str | int, ...], line: int, column: int, key_line: int, key_column: int
) -> None:
    document = only(MANIFEST)
    assert document.place(path) == Place(line, column)
    assert document.place(path, key=True) == Place(key_line, key_column)


def test_lines_are_counted_as_the_parser_counts_them() -> None:
    document = only("a: 1\r\nb: 2\rc: 3\nd: é中\U0001f600 x\ne: 5")
    assert document.place(("c",)) == Place(3, 4)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, None) for text in ("", "~", "null", "NULL")],
        *[(text, True) for text in ("true", "True", "yes", "on", "ON", "y")],
        *[(text, False) for text in ("false", "no", "off", "N")],
        *[(text, 8) for text in ("8", "+8", "010", "0o10", "0x8", "0b1000", "0_1_0")],
        ("-12_000", -12000),
        ("18446744073709551615", 2**64 - 1),
        ("1e3", 1000.0),
        ("08", 8.0),
        (".5", 0.5),
        ("-1.", -1.0),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        *[
            (text, text)
            for text in ("1:30", "2020-01-01", "12e4567", "1.2.3", "0x", "tRue", "-x", "8Gi", "<<")
        ],
        ("'on'", "on"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ('!!int "3"', 3),
        ("!!float 3", 3.0),
        ("!!bool on", True),
        ("!!null ~", None),
        ("!!map {}", {}),
        ("!!seq []", []),
    ],
)
def test_scalars_mean_what_kubectl_takes_them_for(text: str, expected: Any) -> None:
    found = value(text)
    assert (found, type(found)) == (expected, type(expected))


def test_not_a_number_is_a_number() -> None:
    assert math.isnan(value(".nan"))


def test_merge_keys_fill_in_and_explicit_keys_win() -> None:
    text = "base: &b {x: 1, z: 2}\nmore: &m {z: 9, w: 4}\nall: {z: 3, <<: [*b, *m]}\none:\n  <<: *m\n  v: 5\n"
    document = only(text)
    assert document.data["all"] == {"x": 1, "z": 3, "w": 4}
    assert document.data["one"] == {"z": 9, "w": 4, "v": 5}
    assert document.data["base"] == {"x": 1, "z": 2}
    assert document.place(("all", "x")) == Place(1, 14)


def test_a_quoted_merge_key_is_a_plain_name() -> None:
    assert only('"<<": 1').data == {"<<": 1}


def test_duplicate_keys_name_both_places() -> None:
    found = problem("a: 1\nb:\n  c: 1\n  'c': 2\n")
    assert (found.path, found.place, found.fix) == (("b", "c"), Place(4, 3), "remove one of the two")
    assert "line 3, column 3" in found.message


def test_every_problem_is_reported_at_once_also_before_a_syntax_error() -> None:
    found = problems("on: 1\na: !x 2\na: 3\n---\nb: *c\nd: [\n")
    assert [(each.place.line, each.place.column) for each in found if each.place] == [
        *[(1, 1), (2, 4), (3, 1), (5, 4)],
        (7, 1),
    ]


@pytest.mark.parametrize("key", ["on", "yes", "1", "1.5", "~", "null", "y"])
def test_keys_that_are_not_text_are_to_be_quoted(key: str) -> None:
    found = problem(f"{key}: 1")
    assert (found.fix, found.place) == ("quote it", Place(1, 1))
    assert key in found.message
    assert only(f'"{key}": 1').data == {key: 1}


@pytest.mark.parametrize(
    ("text", "place", "fix"),
    [
        ("password: **********", Place(1, 11), "quote the value or remove the line"),
        ("a: *none", Place(1, 4), "quote the value or remove the line"),
        ("a: &a [*a]", Place(1, 8), "write the value out"),
        ("a:\n\tb: 1", Place(2, 1), "use spaces"),
        ("a: 1\n\tb: 1", Place(2, 1), "use spaces"),
        ("a: {{ name }}", Place(1, 5), "{{ name }} must be quoted"),
        ("a: {{ x | y(1) }}\nb: [", Place(1, 5), "{{ name }} must be quoted"),
        ("a: @b", Place(1, 4), "quote the value"),
        ("a: b: c", Place(1, 5), "quote the value"),
        ("a: 'b\nc: d\n", Place(1, 4), "close it"),
        ("a:\n  b: 1\n c: 2\n", Place(3, 2), "align it"),
        ("- a\nb: 1\n", Place(2, 1), "start it with -"),
        ("a: [1, 2\nb: 3", Place(1, 4), "close it with ]"),
        ('a: "\\q"', Place(1, 5), "double the backslash"),
        ("a: - b", Place(1, 4), "on the next line"),
        ("a: x\0", Place(1, 5), "UTF-8"),
        ("a: \x1b", Place(1, 4), "remove it"),
        ("a: !!python/object:os.system x", Place(1, 4), "remove !!python/object:os.system"),
        ("a: !!binary aGk=", Place(1, 4), "remove !!binary"),
        ("a: !!seq {}", Place(1, 4), "remove !!seq"),
        ("a: !!int x", Place(1, 4), "remove the tag"),
        ("a: 18446744073709551616", Place(1, 4), "quote it"),
        ("a: -9223372036854775809", Place(1, 4), "quote it"),
        ("a: " + "9" * 5000, Place(1, 4), "quote it"),
        ("<<: 1", Place(1, 5), "quote"),
        ("? [a]\n: 1", Place(1, 3), "write the key as text"),
        ("a: 1\n? " + "k" * 2000 + "\n: 1", Place(2, 3), "shorten it"),
        (b"a: 1\nb: \xff", Place(2, 4), "UTF-8"),
        ("a: 1\nb: \ud800", Place(2, 4), "UTF-8"),
    ],
)
def test_what_goes_wrong_is_told_with_its_place_and_a_fix(text: str | bytes, place: Place, fix: str) -> None:
    found = problems(text)[0]
    assert found.place == place
    assert fix in found.fix


def test_bytes_that_are_not_utf8_name_their_offset() -> None:
    assert "0xff at offset 8" in problem(b"a: 1\nb: \xff").message
    assert "UTF-16" in problem("a: 1".encode("utf-16")).message
    assert "U+0000" in problem("a: 1".encode("utf-16-le")).message


def test_locating_points_at_values_where_there_is_one_and_at_keys_where_not() -> None:
    document = only("a:\n  b: 1\n")
    placed = Problem(("a",), "kept", place=Place(9, 9))
    found = source.locate(
        [Problem(("a", "b"), "value", value=1), Problem(("a", "b"), "field"), placed], document
    )
    assert [each.place for each in found] == [Place(2, 6), Place(2, 3), Place(9, 9)]


BILLION_LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
MAP_BOMB = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{x: *a{n - 1}, w: *a{n - 1}}}\n" for n in range(1, 60))
MERGE_BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: *a{n - 1}}}\n" for n in range(1, 60)
)
TEXT_BOMB = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
DEPTH_BOMB = "a0: &a0 []\n" + "".join(f"a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]\n" for n in range(1, 60))


@pytest.mark.parametrize("bomb", [BILLION_LAUGHS, MAP_BOMB, MERGE_BOMB, TEXT_BOMB, DEPTH_BOMB])
def test_reference_bombs_are_refused_without_being_expanded(bomb: str) -> None:
    assert any(word in problems(bomb)[0].message for word in ("references", "deep"))
    assert peak_bytes(bomb) < 4_000_000


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{a: " * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "".join(" " * depth + "a:\n" for depth in range(1000)),
    ],
)
def test_deep_nesting_is_refused_at_the_limit(text: str) -> None:
    assert "64 levels" in problem(text).message
    assert peak_bytes(text) < 8_000_000


def test_the_deepest_nesting_allowed_is_read() -> None:
    depth = compose.MAX_DEPTH
    assert only("[" * depth + "]" * depth).data
    assert problem("[" * (depth + 1) + "]" * (depth + 1))


def test_a_huge_scalar_and_a_huge_input_are_refused() -> None:
    assert "1,048,576" in problem("a: " + "x" * (compose.MAX_SCALAR + 1)).message
    assert "16,777,216" in problem("#" * (source.MAX_INPUT + 1)).message
    assert "16,777,216" in problem(b"#" * (source.MAX_INPUT + 1)).message
    assert "16,777,216" in problem("#" + "é" * (source.MAX_INPUT // 2)).message


def test_too_many_values_stop_the_reading_at_the_limit() -> None:
    composer = compose.Composer()
    events = yaml.parse("- 1\n" * (compose.MAX_NODES + 10_000), Loader=yaml.CSafeLoader)
    with pytest.raises(errors.Invalid):
        list(composer.documents_of(events))
    assert composer.nodes == compose.MAX_NODES + 1


def test_too_many_documents_are_refused_also_when_empty() -> None:
    assert len(source.read("---\na: 1\n" * compose.MAX_DOCUMENTS)) == compose.MAX_DOCUMENTS
    assert "1,000 documents" in problem("---\na: 1\n" * (compose.MAX_DOCUMENTS + 1)).message
    assert "1,000 documents" in problem("---\n" * 100_000).message


def test_a_file_full_of_faults_is_not_reported_without_end() -> None:
    assert len(problems("- !x 1\n" * 10_000)) == compose.MAX_PROBLEMS


def refusal(text: str | bytes) -> tuple[Problem, ...]:
    try:
        for document in source.read(text):
            json.dumps(document.data)
    except errors.Invalid as error:
        return error.problems or (Problem((), ""),)
    return ()


def loads_or_is_refused(text: str | bytes) -> None:
    """What loads is plain data, so JSON takes it; what is refused says why."""
    assert all(found.message for found in refusal(text))


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


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.dictionaries(TEXTS, DATA, max_size=4))
def test_plain_data_survive_a_round_trip_through_yaml(data: dict[str, Any]) -> None:
    assert only(yaml.safe_dump(data)).data == data
    assert only(yaml.safe_dump(data, default_flow_style=True)).data == data
