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


def narrowed(rows: Sequence[Row], room: int) -> Sequence[Row]:
    """The same rows, of which the first is the header, if their lines have room; otherwise without columns that
    are empty, and with fewer parts of what stands in the last one, between commas."""
    if max(map(len, lines(rows))) <= room:
        return rows
    kept = [column for column, cells in enumerate(zip(*rows, strict=True)) if any(cells[1:])]
    narrow = [[row[column] for column in kept] for row in rows]
    left = room - sum(widths(narrow)[:-1])
    return [[*cells, _shortened(last, left)] for *cells, last in narrow]


def _shortened(text: str, room: int) -> str:
    while len(text) > room and ", " in text:
        text = text.rpartition(", ")[0]
    return text


def lines(rows: Sequence[Row]) -> list[str]:
    wide = widths(rows)
    return [line(row, wide) for row in rows]
