"""Sets of task indexes in the notation of Indexed Jobs: `0-2,7`. Ten thousand in a row are 6 bytes."""

from collections.abc import Iterable, Iterator


def expand(text: str, below: int) -> set[int]:
    """The indexes in `text` below a bound: users may write a status, and a span of a billion is a few letters."""
    return {index for first, last in _spans(text) for index in range(first, min(last + 1, below))}


def compress(indexes: Iterable[int]) -> str:
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in _runs(sorted(indexes)))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)


def _runs(ordered: list[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for index in ordered:
        if last is not None and index == last + 1:
            last = index
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = index
    if first is not None and last is not None:
        yield first, last
