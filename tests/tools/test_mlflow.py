"""The search for the real MLflow, and the error where there is none."""

from pathlib import Path

import pytest

from tfyard.controlplane.binaries import MissingBinaries
from tools import mlflow


def test_without_mlflow_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(MissingBinaries, match="run `make mlflow`"):
        mlflow.locate()
    mlflow.folder().mkdir(parents=True)  # an installation that was interrupted
    with pytest.raises(MissingBinaries):
        mlflow.locate()
    (mlflow.folder() / mlflow.DONE).touch()
    assert mlflow.locate().parent.parent.name.startswith(f"{mlflow.pinned_version()}-python3.")
