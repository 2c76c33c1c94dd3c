"""The values of a trial in its job. What programs get is read back from a real shell."""

import json
import os
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.reading import only
from tfyard import formats
from tfyard.errors import Usage
from tfyard.formats.sweepfile import filling
from tfyard.model import Job, tensorflow_container
from tfyard.model.expansion import expand
from tfyard.model.sweep import TrialOf, Values

HOSTILE = (
    "'; rm -rf / #", "$(touch hacked)", "`touch hacked`", "a b", "", "two\nlines", '"', "'", "\\", "$HOME", "$$",
    "-n", "*", "~", "{lr}", "${lr}", "!", "a;b", "|", "&", "\t", "ä€", "$(HOME)", "%s", "\\n",
)  # fmt: skip
SHOW = """exec python3 -c 'import json, sys; print(json.dumps(sys.argv[1:]))'"""


def job(**words: Any) -> Job:
    return formats.load({"name": "a", "image": "b", "worker": 1, **words})


def container(filled: Job) -> dict[str, Any]:
    return tensorflow_container(filled.roles[0].template)


def command(filled: Job) -> list[str]:
    """The words with which the kubelet starts the container."""
    words = (*(container(filled).get("command") or ()), *(container(filled).get("args") or ()))
    return [expand(str(word), {}) for word in words]


def env(filled: Job) -> dict[str, str]:
    return {each["name"]: expand(str(each["value"]), {}) for each in container(filled).get("env") or ()}


def printed(words: list[str]) -> list[str]:
    """The arguments that the program of these words has been given."""
    environment = {**os.environ, "HOME": "/home/somebody"}
    done = subprocess.run(words, capture_output=True, check=True, timeout=30, env=environment)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        ("{x}", "", ""),
        ("'{x}'", "", ""),
        ('"{x}"', "", ""),
        ("--x={x}", "--x=", ""),
        ("'a {x} b'", "a ", " b"),
        ('"a {x} b"', "a ", " b"),
        ("'it'\\''s {x}'", "it's ", ""),
        ('"$HOME/{x}/c"', "/home/somebody/", "/c"),
        ("\"$(printf '%s' {x})\"", "", ""),
        ('"$(printf %s "{x}")"', "", ""),
        ("a#{x}", "a#", ""),
    ],
)
def test_a_shell_gives_the_program_exactly_the_value(line: str, before: str, after: str, value: str) -> None:
    words = command(filling.filled(job(run=f"{SHOW} {line}"), {"x": value}))
    assert printed(words) == [f"{before}{value}{after}"]


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20),
    st.sampled_from(["{x}", "'{x}'", '"{x}"', "a'b'{x}\"c\"", '"$(printf %s {x}.)"']),
)
def test_no_text_leaves_its_place_in_a_shell_line(value: str, line: str) -> None:
    words = command(filling.filled(job(run=f"{SHOW} {line} end"), {"x": value}))
    plain = command(filling.filled(job(run=f"{SHOW} {line} end"), {"x": "PLAIN"}))
    assert printed(words) == [word.replace("PLAIN", value) for word in printed(plain)]


@pytest.mark.parametrize(
    "words",
    [
        ["/bin/sh", "-c", "§"], ["sh", "-ec", "§"], ["bash", "-o", "pipefail", "-c", "§"],
        ["bash", "-c", "-e", "§"],
        ["env", "A=1", "sh", "-c", "§"], ["sh", "-c", "--", "§"],
    ],
)  # fmt: skip
def test_a_script_is_found_behind_the_options_of_its_shell(words: list[str]) -> None:
    run = [word.replace("§", f"{SHOW} {{x}}") for word in words]
    assert printed(command(filling.filled(job(run=run), {"x": "'; exit 3"}))) == ["'; exit 3"]


@pytest.mark.parametrize("value", HOSTILE)
def test_words_and_variables_get_the_value_as_it_is(value: str) -> None:
    filled = filling.filled(
        job(run=["show", "--x", "{x}", "a{x}(HOME)"], env={"X_IS": "<{x}>"}), {"x": value}
    )
    assert command(filled) == ["show", "--x", value, f"a{value}(HOME)"]
    assert env(filled) == {"X_IS": f"<{value}>"}


@pytest.mark.parametrize(
    "text",
    ["${HOME}", "{{lr}}", '{"lr": 1}', "awk '{print $1}'", "{undeclared}", "{ lr }", "{lr:.3f}", "${lr}", "{0}",
     "{}", "a{1,2}", "{lr"],
)  # fmt: skip
def test_all_other_braces_stay_as_they_are(text: str) -> None:
    filled = filling.filled(job(run=["show", text, "{lr}"], env={"A": text}), {"lr": 0.1})
    assert command(filled) == ["show", text, "0.1"]
    assert env(filled) == {"A": text}


def test_json_around_a_parameter_is_filled() -> None:
    filled = filling.filled(job(run=["show", '{"lr":{lr},"n":{"b":{b}}}']), {"lr": 0.1, "b": 32})
    assert json.loads(command(filled)[1]) == {"lr": 0.1, "n": {"b": 32}}


def test_a_value_is_not_searched_for_other_parameters() -> None:
    filled = filling.filled(job(run=["show", "{a}", "{b}"]), {"a": "{b}", "b": "{a}"})
    assert command(filled) == ["show", "{b}", "{a}"]


def test_a_parameter_that_no_place_names_is_a_variable_in_capitals() -> None:
    values: Values = {"lr": 1e-05, "batch": 32, "nesterov": True, "name": "$(HOME)"}
    filled = filling.filled(job(run=["show", "{batch}"], env={"LR": "0.5", "OTHER": "1"}), values)
    assert env(filled) == {"OTHER": "1", "LR": "1e-05", "NESTEROV": "true", "NAME": "$(HOME)"}


def test_every_role_gets_the_values_and_other_containers_only_where_they_name_them() -> None:
    beside = {"spec": {"containers": [{"name": "beside", "image": "b", "args": ["{lr}"]}]}}
    filled = filling.filled(job(run="a", ps=1, overlay=beside), {"lr": 0.1, "b": 2})
    for role in filled.roles:
        trains = tensorflow_container(role.template)
        (other,) = (each for each in role.template["spec"]["containers"] if each is not trains)
        assert [each["name"] for each in trains["env"]] == ["B"]
        assert (other["args"], other.get("env")) == (["0.1"], None)


@pytest.mark.parametrize(
    "line",
    ["cat <<X\n{x}\nX", "cat <<-'X'\n\t{x}\n\tX\npython a.py", "a `b {x}`", "a # {x}", "a $'{x}'", "a \\{x}"],
)
def test_a_value_that_needs_quotes_is_refused_where_there_is_no_quoting(line: str) -> None:
    assert filling.unprotected(job(run=line)) == {"x"}
    with pytest.raises(Usage, match="cannot be quoted"):
        filling.filled(job(run=line), {"x": "$(touch hacked)"})
    assert line.replace("{x}", "0.1") in command(filling.filled(job(run=line), {"x": 0.1}))[2]


def test_after_a_comment_or_a_here_document_quoting_works_again() -> None:
    line = "cat <<X >/dev/null\nit's\nX\n# it's\n" + SHOW + " {x}"
    assert printed(command(filling.filled(job(run=line), {"x": "a b"}))) == ["a b"]


def test_attempts_at_a_trial_share_a_folder_in_volumes_that_last() -> None:
    volumes = {
        "out": {"claim": "training", "at": "/out"},
        "data": {"claim": "data", "at": "/data", "readOnly": True},
        "deep": {"claim": "deep", "at": "/deep", "subPath": "runs/"},
        "scratch": {"emptyDir": {}, "at": "/scratch"},
    }
    first, second = (
        filling.as_trial(
            job(run="a {lr}", volumes=volumes), TrialOf(sweep="s", number=7, values={"lr": 1}, attempt=n)
        )
        for n in (1, 2)
    )
    assert first == second
    mounts = {each["name"]: each.get("subPath") for each in container(first)["volumeMounts"]}
    assert mounts == {"out": "s/007", "data": None, "deep": "runs/s/007", "scratch": None}


def test_a_trial_stays_as_long_as_its_sweep() -> None:
    trial = filling.as_trial(job(run="a", keepFor="1h"), TrialOf(sweep="s", number=1, values={"lr": 1}))
    assert trial.run_policy.ttl is None


def test_braces_that_yaml_takes_for_a_mapping_are_told_to_be_quoted() -> None:
    checked = formats.check(only("name: a\nimage: b\nenv:\n  LR: {lr}\nrun: [python, a.py, {lr}]\n"))
    assert [each.fix for each in checked.problems] == ['quote it: "{lr}"'] * 2
