from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from tfyard.model import Condition, RoleStatus, Status
from tfyard.model.summary import JobSummary
from tfyard.overview import job_table, table
from tfyard.overview.wording import age

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
NARROW = job_table.TableShape(is_wide=False, has_namespaces=False)
WIDE = job_table.TableShape(is_wide=True, has_namespaces=True)


def job(status: Status, namespace: str = "ml") -> JobSummary:
    return JobSummary(
        name="mnist", namespace=namespace, job="mnist", created=NOW - timedelta(hours=1), status=status
    )


def test_a_job_is_a_row_of_kubectls_columns() -> None:
    roles = {"Chief": RoleStatus(ready="1/1"), "Worker": RoleStatus(ready="1/2")}
    cells = job_table.row(job(Status(phase="Running", replica_statuses=roles)), NOW, NARROW)
    assert cells == ("mnist", "Running", "1/1", "1/2", "", "0", "60m")
    assert len(cells) == len(job_table.columns(NARROW))


def test_a_wide_row_says_what_happened_last_on_one_line() -> None:
    last = Condition("Failed", "True", message="worker-0 failed:\nboom")
    cells = job_table.row(job(Status(conditions=(last,), start_time=NOW), ""), NOW, WIDE)
    assert cells == (
        "<local>",
        "mnist",
        "Failed",
        "",
        "",
        "",
        "",
        "60m",
        "",
        "0s",
        "",
        "worker-0 failed: boom",
    )
    assert len(cells) == len(job_table.columns(WIDE))


def test_columns_are_three_spaces_apart_and_lines_end_with_their_text() -> None:
    assert table.lines([("NAME", "PS", "AGE"), ("a", "", "1s")]) == ["NAME   PS    AGE", "a            1s"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (119, "119s"),
        (120, "2m"),
        (330, "5m30s"),
        (9000, "150m"),
        (12000, "3h20m"),
        (108000, "30h"),
        (270000, "3d3h"),
        (86400 * 400, "400d"),
        (86400 * 365 * 3, "3y"),
        (86400 * 365 * 9, "9y"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: float, text: str) -> None:
    assert age(seconds) == text


def test_a_table_has_no_control_characters() -> None:
    last = Condition("Failed", "True", message="\x1b[2Jgone\x07 \x9b5m äöü 訓練")
    cells = job_table.row(job(Status(conditions=(last,))), NOW, replace(WIDE, has_namespaces=False))
    (line,) = table.lines([cells])
    assert line.endswith("^[[2Jgone 5m äöü 訓練")
