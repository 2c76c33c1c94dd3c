"""Tables as kubectl prints them: columns as wide as their widest cell, three spaces apart."""

from collections.abc import Iterable, Sequence

from tfyard.overview.wording import harmless

GAP, NARROWEST = 3, 6
Row = Sequence[str]


def widths(rows: Iterable[Row], least: Sequence[int] = ()) -> list[int]:
    """Of each column with the space after it; `least` are widths that columns have already."""
    found = list(least)
    for row in rows:
        found += [NARROWEST] * (len(row) - len(found))
        for column, cell in enumerate(row):
            found[column] = max(found[column], len(cell) + GAP)
    return found


def line(row: Row, wide: Sequence[int]) -> str:
    """The last cell is not padded. What a terminal would obey is made harmless."""
    padded = [cell.ljust(width) for cell, width in zip(row[:-1], wide, strict=False)]
    return harmless("".join([*padded, *row[-1:]]).rstrip())


def lines(rows: Sequence[Row]) -> list[str]:
    wide = widths(rows)
    return [line(row, wide) for row in rows]
