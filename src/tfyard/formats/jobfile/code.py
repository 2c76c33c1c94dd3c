"""`code` of the job file: exactly one source, with an address that is safe for git and for a downloader."""

import re
from typing import Any

from tfyard.formats.declarations.reading import Notes, Path
from tfyard.formats.pods.volumes import HIDES_ALL, check_absolute, normal
from tfyard.model import Code
from tfyard.model.names import OBJECT_NAME

from .words import CodeWords, JobFile, VolumeWords

_SOURCES = {"from": "from_", "path": "path", "git": "git", "url": "url"}
"""Word in the file -> field of CodeWords."""
_KINDS = {"path": "folder", "git": "git", "url": "http"}
_BLANK = re.compile(r"[\s\x00-\x1f\x7f]")
_WITH_SCHEME = re.compile(r"[a-z+]+://")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")
_HOST_IS_OPTION = re.compile(r"([a-z+]+://)?([^/@]*@)?-")
_REF = re.compile(r"(?!-)(?!.*\.\.)[^\s\x00-\x1f\x7f:?*\[\\]+")


def load(words: JobFile, volumes: dict[Path, VolumeWords], notes: Notes) -> Code | None:
    """`volumes` has every volume of the file by its path."""
    if words.code is None:
        if words.requirements is not None:
            text = "must be used with code: it names a file of it"
            notes.error(("requirements",), text, "add code: .", words.requirements)
        return None
    code = CodeWords(from_=words.code) if isinstance(words.code, str) else words.code
    sources = [word for word, field in _SOURCES.items() if getattr(code, field) is not None]
    if len(sources) != 1:
        notes.error(("code",), "must have one source", f"give exactly one of {', '.join(_SOURCES)}")
        return None
    kind, source, ref = _source(code)
    _check_source(words, sources[0], (kind, source, code.ref or ref), notes)
    _check_claim(code, kind, notes)
    _check_requirements(words.requirements, notes)
    _check_mount_path(code.at, volumes, notes)
    return Code(
        kind=kind,
        source=source,
        at=code.at,
        ref=code.ref or ref,
        claim=code.claim or "",
        requirements=words.requirements or "",
    )


def mount_path(words: JobFile) -> str:
    return words.code.at if isinstance(words.code, CodeWords) else CodeWords().at


def _source(code: CodeWords) -> tuple[Any, str, str]:
    """Kind, address and ref (what follows a `#`) of the code."""
    if code.from_ is not None:
        return split_address(code.from_)
    word = next(word for word in _KINDS if getattr(code, word) is not None)
    return _KINDS[word], str(getattr(code, word)), ""


def _check_source(words: JobFile, word: str, address: tuple[Any, str, str], notes: Notes) -> None:
    kind, source, ref = address
    is_text = isinstance(words.code, str)
    if problem := _problem(kind, source):
        value = words.code if is_text else getattr(words.code, _SOURCES[word])
        notes.error(("code",) if is_text else ("code", word), *problem, value)
    if ref and not _REF.fullmatch(ref):
        text = "must be the name of a branch or a tag, or a commit"
        fix = "remove the '-' at its beginning" if ref.startswith("-") else "for example main or v1.2"
        notes.error(("code",) if is_text else ("code", "ref"), text, fix, ref)


def _check_claim(code: CodeWords, kind: str, notes: Notes) -> None:
    if code.claim is None:
        return
    if kind != "folder":
        text = "must be used with a folder: other code is fetched by each task"
        notes.error(("code", "claim"), text, "remove it", code.claim)
    elif not OBJECT_NAME.fullmatch(code.claim):
        text = "must be the name of a PersistentVolumeClaim"
        notes.error(("code", "claim"), text, "use lower-case letters, digits, '-' and '.'", code.claim)


def _check_requirements(file: str | None, notes: Notes) -> None:
    if file is not None and (not file.strip() or file.startswith("/") or ".." in file.split("/")):
        text = "must be a file of the code, relative to its folder"
        notes.error(("requirements",), text, "for example requirements.txt", file)


def split_address(text: str) -> tuple[Any, str, str]:
    """Kind, address and ref. A git URL may end with a branch, tag or commit after a `#`."""
    address, _, ref = text.partition("#")
    if address.startswith(("git+", "git@", "git://", "ssh://")) or address.endswith(".git"):
        return "git", address.removeprefix("git+"), ref
    return ("http" if text.startswith(("http://", "https://")) else "folder"), text, ""


def _problem(kind: str, source: str) -> tuple[str, str] | None:
    """Message and fix if the source is invalid."""
    if not source.strip():
        return "must not be empty", "give a folder, a git URL, or the http(s) URL of an archive"
    if kind == "folder":
        return None
    if (_WITH_SCHEME.match(source) or kind == "http") and _BLANK.search(source):
        return "must not contain blanks", "write %20 for a blank"
    if kind == "http":
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
