"""Tables as kubectl prints them: columns as wide as their widest cell, three spaces apart."""

from collections.abc import Iterable, Sequence

from tfyard.overview.wording import harmless

GAP, NARROWEST = 3, 6
Row = Sequence[str]


def widths(rows: Iterable[Row], least: Sequence[int] = ()) -> list[int]:
    """Width of each column with the space after it; `least` are widths that columns have already."""
    columns = list(least)
    for row in rows:
        columns += [NARROWEST] * (len(row) - len(columns))
        for column, cell in enumerate(row):
            columns[column] = max(columns[column], len(cell) + GAP)
    return columns


def line(row: Row, wide: Sequence[int]) -> str:
    """One row as text, without control characters; the last cell is not padded."""
    padded = [cell.ljust(width) for cell, width in zip(row[:-1], wide, strict=False)]
    return harmless("".join([*padded, *row[-1:]]).rstrip())


def lines(rows: Sequence[Row]) -> list[str]:
    wide = widths(rows)
    return [line(row, wide) for row in rows]
