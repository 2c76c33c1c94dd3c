"""`code` of the job file: one source, whose address is safe to give to git and to a downloader."""

import re
from typing import Any

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.pods.volumes import HIDES_ALL, check_absolute, normal
from tfyard.model import Code

from .words import CodeWords, JobFile, VolumeWords

_SOURCES = {"path": "folder", "git": "git", "url": "http"}
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_WITH_SCHEME = re.compile(r"[a-z+]+://")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_HOST_IS_OPTION = re.compile(r"([a-z+]+://)?([^/@]*@)?-")
_REF = re.compile(r"(?!-)(?!.*\.\.)[^\s\x00-\x1f\x7f:?*\[\\]+")


def load(words: JobFile, volumes: dict[Path, VolumeWords], notes: Notes) -> Code | None:
    """`volumes`: every volume of the file, by its path."""
    if words.code is None:
        return None
    is_text = isinstance(words.code, str)
    code = split_address(words.code) if isinstance(words.code, str) else words.code
    chosen = [word for word in _SOURCES if getattr(code, word) is not None]
    if len(chosen) != 1:
        notes.error(("code",), "must have one source", "give exactly one of path, git, url")
        return None
    word = chosen[0]
    source = getattr(code, word)
    if found := _problem(word, source):
        notes.error(("code",) if is_text else ("code", word), *found, words.code if is_text else source)
    if code.ref and not _REF.fullmatch(code.ref):
        text = "must be the name of a branch or a tag, or a commit"
        fix = "remove the '-' at its beginning" if code.ref.startswith("-") else "for example main or v1.2"
        notes.error(("code",) if is_text else ("code", "ref"), text, fix, code.ref)
    _check_mount_path(code.at, volumes, notes)
    kind: Any = _SOURCES[word]
    return Code(kind=kind, source=source, at=code.at, ref=code.ref)


def mount_path(words: JobFile) -> str:
    return words.code.at if isinstance(words.code, CodeWords) else CodeWords().at


def split_address(text: str) -> CodeWords:
    """A git URL may end with a branch, tag or commit after a `#`."""
    address, _, ref = text.partition("#")
    if address.startswith(("git+", "git@", "git://", "ssh://")) or address.endswith(".git"):
        return CodeWords(git=address.removeprefix("git+"), ref=ref)
    if text.startswith(("http://", "https://")):
        return CodeWords(url=text)
    return CodeWords(path=text)


def _problem(word: str, source: str) -> tuple[str, str] | None:
    """What is wrong with it, and the fix."""
    if not source.strip():
        return "must not be empty", "give a folder, a git URL, or the http(s) URL of an archive"
    if word == "path":
        return None
    if (_WITH_SCHEME.match(source) or word == "url") and _BLANK.search(source):
        return "must not contain blanks", "write %20 for a blank"
    if word == "url":
        is_http = source.startswith(("http://", "https://"))
        return None if is_http else ("must be an http(s) URL", 'for example "https://example.com/code.zip"')
    if _HOST_IS_OPTION.match(source):
        return "must not begin with '-': git would read it as an option", "give the URL of the repository"
    if _HELPER.match(source):
        return "must not use a remote helper of git", "use an https://, ssh://, git:// or file:// URL"
    return None


def _check_mount_path(at: str, volumes: dict[Path, VolumeWords], notes: Notes) -> None:
    check_absolute(at, ("code", "at"), notes)
    if normal(at) == "/":
        notes.error(("code", "at"), HIDES_ALL, 'for example "/code"', at)
    for path, volume in volumes.items():
        if path[0] != "tensorboard" and normal(volume.at) == normal(at):
            text = "must be unique: the code is mounted at this path"
            notes.error((*path, "at"), text, "choose another path", volume.at)
