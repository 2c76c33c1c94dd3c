"""Trees that are copied: what is in them, what lands, and what is refused."""

import os
from pathlib import Path

import pytest

from tfyard.file_trees import CopyError, Landing, Tree, digest, goes_into, is_safe, stays_inside, walk


def land(root: Path, tree: Tree, content: dict[str, bytes]) -> None:
    landing = Landing(root, tree)
    landing.prepare()
    for name, data in content.items():
        with landing.part(name) as part:
            part.write(data)
            part.finish(_sum(data), 0o644, 1.0)
    landing.link()


def _sum(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("name", ["..", "../x", "a/../../x", "/etc/passwd", "", "a//b", "./a", "a/.", "a\0b"])
def test_names_that_leave_their_tree_are_not_safe(name: str) -> None:
    assert not is_safe(name)


@pytest.mark.parametrize("name", ["a", "a/b", "...", "a\nb", "-rf", "\udcff", " ", "a\\..\\b"])
def test_names_that_only_look_odd_are_safe(name: str) -> None:
    assert is_safe(name)


@pytest.mark.parametrize(
    ("name", "target", "stays"),
    [
        ("latest", "step-3", True),
        ("a/b/up", "../../c", True),
        ("a/up", "../../c", False),
        ("up", "..", False),
        ("out", "/etc/passwd", False),
        ("through", "a/link/../../x", False),
        ("empty", "", False),
    ],
)
def test_links_stay_in_their_tree_or_are_left_out(name: str, target: str, stays: bool) -> None:
    assert stays_inside(name, target) is stays


def test_a_destination_with_a_slash_or_a_dot_is_a_folder_to_put_things_into() -> None:
    assert [goes_into(text) for text in ("x/", ".", "..", "a/.", "/")] == [True] * 5
    assert [goes_into(text) for text in ("x", "./x", ".x", "a/..x")] == [False] * 4


def test_a_folder_is_read_with_every_kind_of_entry(tmp_path: Path) -> None:
    odd = os.fsdecode(b"bad\xff\n-name")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / odd).write_bytes(b"12")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    found = walk(tmp_path)
    assert found == Tree(files={f"a/{odd}": 2}, folders=("a", "empty"), links={"link": "a"}, others=("pipe",))
    assert walk(tmp_path / "a" / odd) == Tree(files={odd: 2}, is_file=True)


def test_a_file_has_its_name_only_when_its_content_is_right(tmp_path: Path) -> None:
    landing = Landing(tmp_path, Tree(files={"x": 3, "x.part": 4}))
    with landing.part("x") as part:
        part.write(b"abc")
        assert not (tmp_path / "x").exists()
        assert not part.finish(_sum(b"other"), 0o644, 1.0)
    assert list(tmp_path.iterdir()) == []
    with landing.part("x") as part:
        part.write(b"abc")
        assert [path.name for path in tmp_path.iterdir()] == ["x.part.part"]  # x.part is a file of the tree
        assert part.finish(_sum(b"abc"), 0o755, 1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert os.access(tmp_path / "x", os.X_OK)
    assert (tmp_path / "x").stat().st_mtime == 1.0
    assert landing.has("x", digest(tmp_path / "x"))


def test_a_name_of_255_bytes_lands(tmp_path: Path) -> None:
    name = "n" * 255
    land(tmp_path, Tree(files={name: 1}), {name: b"x"})
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_files_and_folders_do_not_replace_each_other(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("file")
    (tmp_path / "b").mkdir()
    with pytest.raises(CopyError) as refused:
        Landing(tmp_path, Tree(files={"a/x": 1, "b": 1})).prepare()
    assert str(refused.value) == (
        f"{tmp_path}/a is a file, and would become a folder; {tmp_path}/b is a folder, and would become a file"
    )
    with pytest.raises(CopyError, match="is a file, and would become a folder"):
        Landing(tmp_path / "a", Tree(files={"x": 1})).prepare()


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (root / "sub").symlink_to(outside)
    with pytest.raises(CopyError, match="sub is a link, and would become a folder"):
        Landing(root, Tree(files={"sub/x": 1})).prepare()
    (outside / "kept").write_text("kept")
    (root / "file").symlink_to(outside / "kept")
    land(root, Tree(files={"file": 1}), {"file": b"x"})
    assert (outside / "kept").read_text() == "kept"
    assert not (root / "file").is_symlink()


def test_links_are_made_last_and_only_inside(tmp_path: Path) -> None:
    tree = Tree(files={"a/x": 1}, links={"latest": "a", "evil": "/etc", "up": "../y"})
    land(tmp_path, tree, {"a/x": b"1"})
    assert (tmp_path / "latest" / "x").read_bytes() == b"1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "latest"]
    assert Landing(tmp_path, tree).link() == ["evil", "up"]
