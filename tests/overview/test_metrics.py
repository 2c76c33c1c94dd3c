import xml.dom.minidom
from math import nan

from tfyard.overview import metrics
from tfyard.overview.metrics import Point

LOG = """\
2026-11-16T03:00:00.123456789Z Epoch 1/2
2026-11-16T03:00:01.000000000Z 1/10 - loss: 0.9\r10/10 ━━━ 1s 2ms/step - loss: 0.5
2026-11-16T03:00:02.000000000Z Epoch 2/2
2026-11-16T03:00:03.000000000Z 10/10 ━━━ 1s 2ms/step - loss: 0.25
not a line with a time
"""


def test_a_log_with_timestamps_is_read_with_its_epochs() -> None:
    points = [point for point in metrics.from_log("worker-0", LOG) if point.values]
    assert [(point.epoch, point.step, point.values) for point in points] == [
        (1, 10, {"loss": 0.5}),
        (2, 10, {"loss": 0.25}),
    ]
    assert points[1].at - points[0].at == 2.0


def test_points_become_rows_with_a_column_for_each_metric() -> None:
    points = [
        Point(at=0.5, task="worker-0", values={"loss": 0.5}, step=1),
        Point(at=2.0, task="evaluator-0", values={"accuracy": 0.9, 'a "b",c': 1.0}),
    ]
    assert metrics.rows(points) == [
        ("time", "task", "step", "loss", "accuracy", 'a "b",c'),
        ("1970-01-01T00:00:00.500Z", "worker-0", "1", "0.5", "", ""),
        ("1970-01-01T00:00:02.000Z", "evaluator-0", "", "", "0.9", "1"),
    ]
    assert metrics.csv(points).splitlines()[0] == 'time,task,step,loss,accuracy,"a ""b"",c"'


def test_json_has_no_nan() -> None:
    assert metrics.plain(Point(at=0, task="a", values={"loss": nan}, step=1))["loss"] == "nan"


def test_a_picture_has_a_line_for_each_curve_and_is_xml() -> None:
    points = [Point(at=i, task="worker-0", values={"loss": 8e307 / (i - 5.5)}, step=i) for i in range(10)]
    points.append(Point(at=11, task="worker-0", values={"loss": nan}, step=11))
    drawn = metrics.svg(metrics.progress(points), "a <job> & more")
    lines = xml.dom.minidom.parseString(drawn).getElementsByTagName("polyline")
    assert len(lines) == 1
    assert "nan" not in lines[0].getAttribute("points")
    assert len(lines[0].getAttribute("points").split()) == 10


def test_the_chief_leads_else_the_first_worker_and_the_evaluator_is_told_too() -> None:
    assert metrics.leading({"worker-0", "worker-1", "chief-0", "evaluator-0"}) == ["chief-0", "evaluator-0"]
    assert metrics.leading({"worker-0", "ps-0"}) == ["worker-0"]
    assert metrics.leading({"ps-0"}) == ["ps-0"]
