"""The generated parts of the chart and of manifests/ are those of this package."""

import importlib.util
import json
import re
from types import ModuleType

import pytest
import yaml

from tests.cli.running import ROOT
from tests.controller.test_metrics import OURS
from tfyard import __version__

CHART = ROOT / "charts" / "tfyard"


@pytest.fixture
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("chart", ROOT / "tools" / "chart.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_generated_is_committed(tool: ModuleType) -> None:
    stale = [str(path) for path, text in tool.generated().items() if path.read_text() != text]
    assert stale == [], "run `python tools/chart.py`"


def test_the_chart_has_the_packages_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_the_schema_knows_every_value_and_the_table_explains_it() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]
    assert set(values) <= set(schema)
    readme = (CHART / "README.md").read_text()
    assert [name for name in values if f"| `{name}" not in readme] == []


def test_alerts_and_dashboard_ask_for_metrics_that_exist() -> None:
    text = (CHART / "files/alerts.yaml").read_text() + (CHART / "files/dashboard.json").read_text()
    asked = {name.removesuffix("_bucket") for name in re.findall(r"\btfyard_\w+", text)}
    assert asked <= set(OURS)
