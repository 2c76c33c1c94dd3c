"""Files by the names that users give: errors carry what any interface needs to show them."""

from pathlib import Path

import pytest

from tfyard.cli.problems import format_problem
from tfyard.errors import Invalid, Usage
from tfyard.job_input import files


def test_a_file_that_cannot_be_parsed_comes_with_its_lines_and_its_name(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("name: a\nimage: [\n")
    with pytest.raises(Invalid) as caught:
        files.read_documents(str(tmp_path / "job.yaml"))
    assert caught.value.text == ["name: a", "image: [", ""]
    assert caught.value.name == str(tmp_path / "job.yaml")


def test_a_job_with_errors_comes_with_its_document() -> None:
    (document,) = files.parse(b"name: a\nimage: b\nwroker: 2\n", "job.yaml")
    with pytest.raises(Invalid) as caught:
        files.load(document)
    (problem,) = caught.value.problems
    shown = format_problem(problem, caught.value.text, caught.value.name)
    assert shown.splitlines()[:2] == ["job.yaml:3:1: error: wroker: unknown field 'wroker'", "    wroker: 2"]


def test_the_items_of_a_list_are_documents() -> None:
    text = b'{"kind": "List", "items": [{"kind": "TFJob"}, {"kind": "Service"}]}'
    assert [document.data["kind"] for document in files.parse(text, "-")] == ["TFJob", "Service"]


@pytest.mark.parametrize(
    ("name", "message"), [("absent.yaml", "absent.yaml: file not found"), (".", ". is a folder")]
)
def test_what_cannot_be_read_is_a_usage_error(name: str, message: str) -> None:
    with pytest.raises(Usage, match=message):
        files.read_bytes(name)


def test_input_beyond_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.truncate(1 << 40)
    for name, size in ((str(tmp_path / "huge.yaml"), "1,099,511,627,776"), ("/dev/zero", "more")):
        with pytest.raises(Invalid) as caught:
            files.read_bytes(name)
        (problem,) = caught.value.problems
        assert problem.message == f"the input has {size} bytes; at most 16,777,216 are allowed"
        assert (problem.fix, caught.value.name) == ("split the file", name)


@pytest.mark.parametrize(
    ("code", "path", "message", "fix"),
    [
        ("nowhere", ("code",), "{}/nowhere is not a folder", "paths are relative to the job file"),
        ("{path: a.py}", ("code", "path"), "{}/a.py is not a folder", "name the folder that it is in"),
        ("{from: a.py}", ("code", "from"), "{}/a.py is not a folder", "name the folder that it is in"),
        (f"{'x' * 5000}", ("code",), "{}/" + "x" * 5000 + " is not a folder", "paths are relative"),
        ('"a\\0b"', ("code",), "{}/a\0b is not a folder", "paths are relative"),
    ],
)
def test_a_folder_of_code_that_does_not_exist_is_a_problem_among_all_others(
    tmp_path: Path, code: str, path: tuple[str, ...], message: str, fix: str
) -> None:
    (tmp_path / "a.py").touch()
    name = str(tmp_path / "job.yaml")
    (document,) = files.parse(f"name: a\nimage: b\ncode: {code}\nwroker: 2\n".encode(), name)
    missing, typo = files.check(document, name).problems
    assert (missing.path, missing.message) == (path, message.format(tmp_path))
    assert missing.fix.startswith(fix)
    assert missing.position is not None
    assert (missing.position.line, typo.path) == (3, ("wroker",))
    assert files.check(files.parse(b"name: a\nimage: b\ncode: .\n", name)[0], name).problems == ()


def test_requirements_must_be_a_file_of_the_code(tmp_path: Path) -> None:
    name = str(tmp_path / "job.yaml")
    (document,) = files.parse(b"name: a\nimage: b\ncode: {from: .}\nrequirements: r.txt\n", name)
    (missing,) = files.check(document, name).problems
    assert (missing.path, missing.message) == (("requirements",), f"{tmp_path}/./r.txt is not a file")
    (tmp_path / "r.txt").touch()
    assert files.check(document, name).problems == ()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    files.write_text(str(tmp_path / "a"), "old")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(str(tmp_path / "a"), "\ud800")
    assert (tmp_path / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_name_that_is_not_utf8_can_be_shown() -> None:
    assert files.display_name("a\udcff.yaml") == "a\ufffd.yaml"
    assert files.display_name("-") == "<stdin>"
