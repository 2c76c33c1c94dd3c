"""Jobs compared, wherever they ran: `tfyard compare`, and `tfyard.compare` of Python."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfyard.errors import NotPossible, Usage
from tfyard.job_input.git_trees import RecordedCode, difference
from tfyard.overview import comparison, comparison_text, curve_panels
from tfyard.overview.comparison import ComparedJob, Comparison
from tfyard.sdk.card import BOX, table_row

if TYPE_CHECKING:
    from tfyard.sdk.place import Place


def compare(places: Sequence[Place]) -> Comparison:
    """The jobs side by side, the first one as the baseline; of a single one, the one before it is the baseline."""
    if len(places) == 1:
        before = places[0].previous()
        if before is None:
            raise Usage(f"{places[0].name}: there is no job before it to compare it with; name two jobs")
        places = [before, *places]
    names = [place.name for place in places]
    labels = names if len(set(names)) == len(names) else [_title(place) for place in places]
    if len(set(labels)) < len(labels):
        raise Usage(
            f"{next(each for each in labels if labels.count(each) > 1)}: is named twice; name two jobs"
        )
    jobs = [read(place, label) for place, label in zip(places, labels, strict=True)]
    return comparison.compare(jobs, datetime.now(UTC))


def read(place: Place, label: str = "") -> ComparedJob:
    """One side of a comparison; each log is read once."""
    return ComparedJob(label=label or place.name, record=place.job_record(), points=tuple(place.points(())))


def code_difference(compared: Comparison) -> str:
    """The difference of the code between the baseline and each other job, as `git diff` writes it."""
    first, *others = (
        RecordedCode(label=j.label, state=j.record.origin.code, diff=j.record.diff) for j in compared.jobs
    )
    texts = [difference(first, other, Path.cwd()) for other in others]
    if len(others) == 1:
        return texts[0]
    pairs = zip(others, texts, strict=True)
    return "\n".join(f"# {first.label} -> {other.label}\n{text}" for other, text in pairs)


def _title(place: Place) -> str:
    return f"{place.namespace}/{place.title}" if place.namespace else place.title


class RunComparison:
    """Runs side by side; the first one is the baseline. In a notebook, it is shown as a card."""

    def __init__(self, compared: Comparison) -> None:
        self._compared = compared

    @property
    def names(self) -> list[str]:
        return list(self._compared.labels)

    @property
    def differences(self) -> list[dict[str, Any]]:
        """What differs: section, name, and the value of each run by its name."""
        each = self._compared.differences
        return [{"section": one.section, "name": one.name, **self._by_name(one.values)} for one in each]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """For each metric, its last and its best value in each run, and at which step."""
        return [
            {"name": metric.name, "run": name, "last": value.last, "at": value.at, "best": value.best}
            | {"best_at": value.best_at, "unit": value.unit}
            for metric in self._compared.metrics
            for name, value in self._by_name(metric.values).items()
            if value is not None
        ]

    @property
    def notes(self) -> list[str]:
        """What is not known, and why."""
        return list(self._compared.notes)

    def _by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        return dict(zip(self._compared.labels, values, strict=True))

    def diff(self) -> str:
        """The difference of the code, as `git diff` writes it."""
        return code_difference(self._compared)

    def frame(self) -> Any:
        """All of it as a frame of pandas: a row for each fact, a column for each run."""
        try:
            import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]
        except ImportError:
            raise NotPossible("a frame needs pandas: `pip install pandas`") from None
        rows = comparison_text.rows(self._compared)
        index = pandas.MultiIndex.from_tuples(
            [(section, row[0]) for section, row in rows], names=("section", "name")
        )
        return pandas.DataFrame([row[1:] for _, row in rows], index=index, columns=self.names)

    def plot(self) -> str:
        """The curves of all metrics as SVG."""
        return picture(self._compared)

    def _repr_html_(self) -> str:
        head, *rows = comparison_text.table(self._compared)
        body = "".join(table_row(row) for row in rows if row)
        notes = "".join(f"<div>{escape(note)}</div>" for note in self._compared.notes)
        table = f"<table>{table_row(head, 'th')}{body}</table>"
        return f'<div style="{BOX};overflow:auto">{table}{notes}{self.plot()}</div>'

    def __str__(self) -> str:
        return "\n".join(comparison_text.lines(self._compared))

    def __repr__(self) -> str:
        return f"<RunComparison of {', '.join(self.names)}>"


def picture(compared: Comparison) -> str:
    return curve_panels.svg(comparison.curves(compared), " and ".join(compared.labels))
