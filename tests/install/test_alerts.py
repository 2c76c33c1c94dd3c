"""The chart's alerts: valid, tested one by one, and explained in the run book."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.running import ROOT
from tests.helm import CHART, Helm
from tests.install.test_chart import render, the
from tests.programs import Call
from tfyard.controller.metrics import Metrics

FILE = CHART / "files" / "alerts.yaml"
UNIT_TESTS = Path(__file__).with_name("alerts.test.yaml")
PAGE = ROOT / "docs" / "runbook.md"


def groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return found


ALERTS = {rule["alert"]: rule for group in groups() for rule in group["rules"]}


@pytest.mark.processes
def test_each_alert_fires_when_it_should_and_not_close_to_that(calling: Call, tmp_path: Path) -> None:
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    (tmp_path / "tests.yaml").write_bytes(UNIT_TESTS.read_bytes())
    checked = calling(
        "promtool", "check", "rules", "--lint=all", "--lint-fatal", str(tmp_path / "alerts.yaml")
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tested = calling("promtool", "test", "rules", str(tmp_path / "tests.yaml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [
        each for test in yaml.safe_load(UNIT_TESTS.read_text())["tests"] for each in test["alert_rule_test"]
    ]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == set(ALERTS)
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == set(ALERTS)


@pytest.mark.processes
def test_prometheus_finds_nothing_to_object_to_in_the_metrics(calling: Call) -> None:
    checked = calling("promtool", "check", "metrics", input=Metrics().render())
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_each_alert_links_to_a_section_of_the_run_book_and_each_section_is_of_an_alert() -> None:
    sections = re.findall(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == list(ALERTS)
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"


def test_each_section_says_what_it_means_what_does_not_work_and_what_to_do() -> None:
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, meaning, effect, *steps = section.split("\n\n")
        assert meaning[0].isupper(), name
        assert effect.startswith("**Until it is fixed**"), name
        assert any(step.startswith("```console") for step in steps), name


@pytest.mark.processes
def test_the_chart_installs_these_alerts_with_links_to_where_the_run_book_is(helm: Helm) -> None:
    address = "https://docs.example/runbook.html"
    rule = the("PrometheusRule", render(helm, "--set=metrics.prometheusRule.enabled=true"))
    assert rule["spec"]["groups"] == groups()
    options = ("--set=metrics.prometheusRule.enabled=true", f"--set=metrics.prometheusRule.runbook={address}")
    (group,) = the("PrometheusRule", render(helm, *options))["spec"]["groups"]
    links = {each["alert"]: each["annotations"]["runbook_url"] for each in group["rules"]}
    assert links == {name: f"{address}#{name.lower()}" for name in ALERTS}
    (other,) = the("PrometheusRule", render(helm, options[0], "--namespace=team-a"))["spec"]["groups"]
    assert other["rules"][0]["expr"] == 'absent(tfyard_is_leader{namespace="team-a"})'


def test_alerts_and_dashboard_ask_for_metrics_that_the_operator_has() -> None:
    shown = re.findall(r"^# TYPE (\w+)", Metrics().render(), re.MULTILINE)
    asked = set(
        re.findall(r"tfyard_\w+", FILE.read_text() + (CHART / "files" / "dashboard.json").read_text())
    )
    assert len(asked) > len(ALERTS)
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in asked} <= set(shown)
