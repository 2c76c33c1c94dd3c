from tfyard.overview import metrics, top
from tfyard.overview.metrics import Point
from tfyard.overview.top import TaskUse


def test_a_row_has_cpu_memory_progress_and_speed_of_a_task() -> None:
    points = [Point(at=float(i), task="w", values={"loss": 0.5}, step=10 * i) for i in range(5)]
    progress = metrics.progress(points, total=100)
    use = TaskUse(task="worker-0", state="Running", cpu=1.5, memory=2_000_000, progress=progress)
    assert top.row(use) == ("worker-0", "Running", "1.50", "2 MB", "40/100", "10", "0.5", "6s")


def test_a_task_that_has_ended_has_no_rate() -> None:
    points = [Point(at=float(i), task="w", values={}, step=i) for i in range(5)]
    use = TaskUse(task="worker-0", state="Succeeded", progress=metrics.progress(points))
    assert top.row(use) == ("worker-0", "Succeeded", "", "", "4", "", "", "")


def test_unknown_values_are_empty() -> None:
    assert top.row(TaskUse(task="ps-0")) == ("ps-0", "", "", "", "", "", "", "")


def test_a_pods_containers_are_added_up() -> None:
    usage = [{"usage": {"cpu": "250m", "memory": "1Ki"}}, {"usage": {"cpu": "1500000000n", "memory": "2Ki"}}]
    assert top.pod_use({"containers": usage}) == (1.75, 3072)
