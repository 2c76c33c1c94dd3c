"""Tables in terminals of any width."""

from tfyard.overview import table

HEADER = ("NAME", "STATE", "CHIEF", "WORKERS", "PS", "RESTARTS", "AGE", "TRIALS")
SWEEP = (
    "cancer-sweep-20261118",
    "Running",
    "",
    "",
    "",
    "",
    "3m",
    "12/24 done, 1 failed, 4 running, best auc 0.9981",
)


def test_a_table_of_sweeps_fits_into_eighty_columns() -> None:
    rows = table.narrowed([HEADER, SWEEP], 80)
    assert max(map(len, table.lines(rows))) <= 80
    assert [*rows[0]] == ["NAME", "STATE", "AGE", "TRIALS"]
    assert [*rows[1]][-1] == "12/24 done, 1 failed, 4 running"


def test_a_table_that_has_room_is_as_it_is() -> None:
    assert table.narrowed([HEADER, SWEEP], 200) == [HEADER, SWEEP]
