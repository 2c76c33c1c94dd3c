"""`tfyard.compare` of Python: values, a card of a notebook in a real kernel, and a frame of the real pandas."""

from pathlib import Path

import pytest

from tests.overview.test_comparison import job, of
from tests.sdk.test_notebook import executed, folder, html, streamed
from tfyard.controlplane.binaries import MissingBinaries
from tfyard.sdk.comparing import RunComparison
from tfyard.testing import fixtures
from tools import mlflow

__all__ = ["folder"]
EVIL = "<script>alert('&')</script>"
TRAIN = """\
import sys
for step in (1, 2, 3): print("step", step, "loss", float(sys.argv[1].removeprefix("--lr=")) / step)
"""
RUNS = """\
import tfyard
one, two = (tfyard.run(tfyard.Job("train.py", args=[f"--lr={rate}"])).wait() for rate in (1, 2))
"""


@pytest.fixture(scope="session")
def pandas(request: pytest.FixtureRequest) -> Path:
    """The folder of packages with pandas: it comes with MLflow, in an environment of its own."""
    try:
        python = mlflow.locate()
    except MissingBinaries as problem:
        fixtures.missing(request.config, str(problem))
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    return packages


def test_what_differs_and_the_metrics_are_values_by_the_names_of_the_runs() -> None:
    compared = RunComparison(of(job("a", (2.0, 1.0)), job("b", (4.0, 3.0), parameters={"lr": "0.2"})))
    assert compared.names == ["a", "b"]
    assert compared.differences == [{"section": "parameters", "name": "lr", "a": "0.1", "b": "0.2"}]
    assert [(each["run"], each["last"], each["best_at"]) for each in compared.metrics] == [
        ("a", 1.0, 1),
        ("b", 3.0, 1),
    ]
    assert repr(compared) == "<RunComparison of a, b>"


def test_nothing_in_the_card_that_others_wrote_is_markup() -> None:
    other = job(EVIL, (0.5, 0.25), parameters={EVIL: EVIL}, problems=(EVIL,))
    card = RunComparison(of(job("a", (2.0, 1.0)), other))._repr_html_()
    assert "<script" not in card
    assert card.count("&lt;script&gt;") >= 4
    assert card.count("<polyline") == 2


@pytest.mark.processes
@pytest.mark.long
def test_a_notebook_shows_the_comparison_as_a_card_and_as_a_frame_of_pandas(
    pandas: Path, folder: Path
) -> None:
    (folder / "train.py").write_text(TRAIN)
    _, card, refused, frame, cells = executed(
        RUNS,
        "two = tfyard.compare(one, two); two",
        "try: two.frame()\nexcept tfyard.NotPossible as problem: print(problem)",
        f"import sys; sys.path.append({str(pandas)!r}); frame = two.frame(); frame",
        "print([*frame.loc[('parameters', 'lr')]], [*frame.loc['metrics'].index], [*frame.columns] == two.names)",
    )
    assert "<td" in html(card)
    assert "<polyline" in html(card)
    assert streamed(refused) == "a frame needs pandas: `pip install pandas`\n"
    assert "dataframe" in html(frame)
    assert streamed(cells) == "['1', '2'] ['loss last', 'loss best'] True\n"
