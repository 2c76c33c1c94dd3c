"""The table of what runs on the node and what on `tfyard dev`."""

from tools.cluster_table import PAGE, written


def test_contributing_says_what_the_files_of_tests_cluster_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "`test_exec.py`" in page
    assert page == written(page), "run: python tools/cluster_table.py"
