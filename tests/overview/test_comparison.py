"""What differs between jobs, and their metrics side by side, as tables and as a picture."""

import json
import xml.dom.minidom
from datetime import UTC, datetime, timedelta
from math import nan
from typing import Any

import msgspec

from tfyard.model.origin import CodeState, MachineRecord, Origin, Software
from tfyard.overview import comparison_text, curve_panels
from tfyard.overview.attempts import Attempt
from tfyard.overview.best_values import best_values, better
from tfyard.overview.comparison import ComparedJob, Comparison, compare, curves
from tfyard.overview.job_record import JobRecord, RoleRecord
from tfyard.overview.metrics import Point

START = datetime(2026, 1, 1, tzinfo=UTC)


def job(label: str, losses: tuple[float, ...] = (), **changes: Any) -> ComparedJob:
    origin: dict[str, Any] = {
        "parameters": {"lr": "0.1"},
        "command": ("python", "train.py"),
        "code": CodeState(commit="a" * 40, branch="main", is_dirty=False),
        "software": Software(python="3.11.7", packages={"numpy": "2.0"}),
        "machine": MachineRecord(name="here", cpus=2),
    }
    origin |= {name: changes.pop(name) for name in list(changes) if name in origin}
    record: dict[str, Any] = {
        "name": label,
        "job": "t",
        "place": "machine",
        "started": START,
        "ended": START + timedelta(minutes=2),
        "state": "Succeeded",
        "origin": Origin(**origin),
        "roles": (RoleRecord(name="Worker", tasks=1, image="a:1"),),
        "attempts": (Attempt(task="worker-0"),),
    }
    points = tuple(
        Point(at=step, task=changes.get("task", "worker-0"), values={"loss": value}, step=step)
        for step, value in enumerate(losses)
    )
    changes.pop("task", None)
    return ComparedJob(label=label, record=JobRecord(**record | changes), points=points)


def of(*jobs: ComparedJob) -> Comparison:
    return compare(jobs, START + timedelta(hours=1))


def different(*jobs: ComparedJob) -> dict[str, tuple[str, ...]]:
    return {f"{each.section} {each.name}": each.values for each in of(*jobs).differences}


def test_the_same_jobs_have_no_differences() -> None:
    assert different(job("a"), job("b")) == {}
    assert "nothing that is known differs" in comparison_text.lines(of(job("a"), job("b")))


def test_parameters_code_packages_images_and_roles_differ() -> None:
    other = job(
        "b",
        parameters={"lr": "0.2", "wide": "true"},
        command=("python", "train.py", "--lr", "0.2"),
        code=CodeState(commit="b" * 40, branch="main", is_dirty=True, changed=("M train.py",)),
        diff="--- a/x\n+++ b/x\n+1\n-2\n-3\n",
        software=Software(python="3.12.0", packages={"numpy": "2.1"}),
        roles=(RoleRecord(name="Worker", tasks=4, image="a:2"), RoleRecord(name="PS", tasks=1)),
        tensorflow="2.21.0",
    )
    found = different(job("a"), other)
    assert found.pop("code not committed")[1].startswith("1 file, +1 -2 (")
    assert found == {
        "parameters lr": ("0.1", "0.2"),
        "parameters wide": ("", "true"),
        "code commit": ("a" * 12, "b" * 12),
        "packages python": ("3.11.7", "3.12.0"),
        "packages numpy": ("2.0", "2.1"),
        "image worker": ("a:1", "a:2"),
        "roles worker tasks": ("1", "4"),
        "roles ps tasks": ("", "1"),
    }, "the command differs by its parameters, and the version that is unknown in one is no difference"


def test_a_command_that_differs_in_no_parameter_is_shown() -> None:
    assert different(job("a"), job("b", command=("python", "other.py"))) == {
        "command command": ("python train.py", "python other.py")
    }


def test_two_diffs_of_the_same_size_differ() -> None:
    dirty = CodeState(commit="a" * 40, branch="main", is_dirty=True, changed=("M x",))
    one, other = (job(name, code=dirty, diff=f"+{name}\n") for name in ("a", "b"))
    assert list(different(one, other)) == ["code not committed"]


def test_an_image_that_is_named_by_its_digest_is_the_one_of_the_same_digest() -> None:
    digest = f"example/a@sha256:{'0' * 64}"
    one, exact, other = (
        job(label, roles=(RoleRecord(name="Worker", tasks=1, image=image, digest=found),))
        for label, image, found in (
            ("a", "a:1", digest),
            ("b", digest, digest),
            ("c", "a:1", f"{digest[:-1]}1"),
        )
    )
    assert different(one, exact) == {}
    assert list(different(exact, other)) == ["image worker digest"]


def test_unknown_packages_are_a_note_and_no_difference() -> None:
    made = of(job("a"), job("b", software=None, problems=("logs: forbidden",)))
    assert made.differences == ()
    assert made.notes == ("b: logs: forbidden", "b: packages are unknown")


def test_metrics_stand_side_by_side_with_the_best_and_its_step() -> None:
    made = of(job("a", (3.0, 1.0, 2.0)), job("b", (nan, 4.0), task="chief-0"))
    rows = [row for section, row in comparison_text.rows(made) if section == "metrics"]
    assert rows == [("loss last", "2 at step 2", "4 at step 1"), ("loss best", "1 at step 1", "4 at step 1")]


def test_times_and_costs_are_facts_of_every_job() -> None:
    slow = job("b", ended=None, cpu_hours=1.5, cpu_is="reserved", gpu_hours=0.25)
    facts = {row[0]: row[1:] for row in of(job("a"), slow).facts}
    assert facts["took"] == ("2m00s", "1h00m")
    assert (facts["CPU hours"], facts["GPU hours"]) == (("", "1.5 reserved"), ("", "0.25"))


def test_csv_markdown_and_json_have_the_whole_values() -> None:
    made = of(job("a", (nan, nan)), job("b|c", parameters={"lr": "0.1", "note": "x," + "y" * 90}))
    assert f'parameters,note,,"x,{"y" * 90}"\r\n' in comparison_text.csv(made)
    assert "|  |  | a | b\\|c |\n" in comparison_text.markdown(made)
    plain = json.loads(msgspec.json.encode(comparison_text.plain(made)))
    assert plain["jobs"][0]["metrics"][0]["last"] == "nan"
    assert plain["differences"] == [
        {"section": "parameters", "name": "note", "values": ["", "x," + "y" * 90]}
    ]
    assert max(map(len, comparison_text.lines(made))) < 120


def test_csv_has_plain_values_and_the_steps_in_rows_of_their_own() -> None:
    text = comparison_text.csv(of(job("a", (3.0, 1.0, 2.0)), job("b", (nan, 4.0), task="chief-0")))
    assert text.split("metrics,", 1)[1].replace("metrics,", "").splitlines() == [
        "loss last,2.0,4.0",
        "loss last at step,2,1",
        "loss best,1.0,4.0",
        "loss best at step,1,1",
    ]


def test_jobs_that_do_not_fit_beside_each_other_are_compared_in_several_tables() -> None:
    names = ("mnist-20261118-101500", "mnist-20261118-113000", "mnist-20261118-120000")
    made = of(*(job(name, (3.0, 1.0), parameters={"note": f"{name} {'y' * 90}"}) for name in names))
    shown = list(comparison_text.lines(made, 80))
    assert max(map(len, shown)) <= 80
    assert [line.split() for line in shown if line.startswith(" " * 9) and names[0] in line] == [
        [names[0], names[1]],
        [names[0], names[2]],
    ]
    assert max(map(len, comparison_text.lines(made))) > 120


def test_three_jobs_are_compared_at_once() -> None:
    assert different(job("a"), job("b"), job("c", parameters={"lr": "1"})) == {
        "parameters lr": ("0.1", "0.1", "1")
    }


def test_the_picture_has_a_panel_for_each_metric_with_one_scale_for_all() -> None:
    made = of(job("a & b", (8e307, -8e307, 1.0)), job("c", (1.0, nan, 2.0)))
    drawn = xml.dom.minidom.parseString(curve_panels.svg(curves(made), "a <b>"))
    first, second = drawn.getElementsByTagName("polyline")
    assert len(first.getAttribute("points").split()) == 3
    heights = {point.split(",")[1] for point in second.getAttribute("points").split()}
    assert len(heights) == 1, "1 and 2 are the same beside values of that size"
    assert "nan" not in second.getAttribute("points")


def test_whether_more_is_better_is_known_by_the_name() -> None:
    less = ("loss", "val_loss", "mae", "root_mean_squared_error", "perplexity", "eval/wer", "KL", "fid")
    more = (
        "accuracy",
        "val_acc",
        "auc",
        "f1",
        "f1_score",
        "mIoU",
        "reward",
        "top_5",
        "mean_average_precision",
    )
    unknown = ("lr", "learning_rate", "steps_per_second", "memory", "beta", "global_step")
    assert [name for name in less if better(name) != -1] == []
    assert [name for name in more if better(name) != 1] == []
    assert [name for name in unknown if better(name)] == []


def test_values_of_a_job_that_counts_epochs_are_placed_by_epoch() -> None:
    points = [
        Point(at=e, task="worker-0", values={"loss": loss, "lr": 0.1}, step=10, epoch=e)
        for e, loss in ((1, 2.0), (2, 3.0))
    ]
    loss, rate = best_values(points)
    assert (loss.last, loss.at, loss.best, loss.best_at, loss.unit) == (3.0, 2, 2.0, 1, "epoch")
    assert (rate.best, rate.best_at) == (None, None)


def test_what_others_have_recorded_does_not_reach_the_terminal_as_control_characters() -> None:
    """The record of a job on a cluster is a ConfigMap that others may write."""
    evil = "\x1b]0;title\x07\x1b[2J"
    code = CodeState(commit="a" * 40, missing=(f"{evil}.py: its name has special characters",), problem=evil)
    one, other = job("a", code=code), job("b", parameters={"lr": evil}, problems=(evil,))
    compared = of(one, other)
    alone = comparison_text.record_lines(one, START)
    as_file = [each(compared).splitlines() for each in (comparison_text.csv, comparison_text.markdown)]
    for text in map("".join, (alone, comparison_text.lines(compared), *as_file)):
        assert "^[]0;title^[[2J" in text
        assert text.isprintable()
