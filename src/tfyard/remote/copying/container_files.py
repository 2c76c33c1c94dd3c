"""Files in a container, by the tools that it has: sh, find, stat, xargs, tar and sha256sum, busybox's or others.

Names go in and out with a NUL behind each, because they may contain anything else.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager

from msgspec import Struct

from tfyard.errors import TfyardError
from tfyard.file_trees import CopyError, Tree, is_safe, shown, some
from tfyard.kube import Client
from tfyard.kube.pod_streams import STDERR, STDOUT, PodCommand, RemoteProcess, start
from tfyard.remote.copying.tar_stream import END, Archive

MOST_ERRORS = 1 << 14
"""Bytes of standard error that are kept."""
FOLDER, GONE, UNREADABLE = "folder", "gone", "unreadable"
"""Values of `states` for a name that is no readable file."""
FINAL = (
    "Permission denied",
    "Read-only",
    "No space",
    "quota exceeded",
    "ot a directory",
    "exists",
    "too long",
)
"""Parts of error messages after which another attempt does not help."""
MISSING_CODE, NO_FILE_CODE, REFUSED_CODE = 44, 42, 41

PART = ".tfyard-part"
"""Suffix of files that are not complete yet."""
ENTER = f'cd -- "$1" || exit {REFUSED_CODE}; '
LIST = f"""
if [ ! -d "$1" ]; then
  [ -e "$1" ] || exit {MISSING_CODE}
  [ -f "$1" ] || exit {NO_FILE_CODE}
  printf 'F\\n'; stat -L -c %s -- "$1"; printf '\\0e\\0'; exit 0
fi
{ENTER}
set --  # lost+found at the top of a disk belongs to root, and is not missed
[ ! -e lost+found ] || [ -r lost+found ] || set -- -path ./lost+found -prune -o
printf 'd\\0'; find . "$@" -type d -print0
printf 'o\\0'; find . "$@" ! -type d ! -type f ! -type l -print0
find . "$@" -type f -exec sh -c 'printf "f\\n"; stat -c %s -- "$@"; printf "\\0"; printf "%s\\0" "$@"' sh {{}} +
find . "$@" -type l -exec sh -c 'for f do printf "l\\n"; readlink -- "$f"; printf "\\0%s\\0" "$f"; done' sh {{}} +
printf 'e\\0'
"""
STATES = f"""command -v sha256sum >/dev/null || {{ echo 'sha256sum is not there' >&2; exit 127; }}
{ENTER}xargs -0 sh -c 'for f do
  if [ -d "$f" ]; then echo {FOLDER}; elif [ ! -e "$f" ]; then echo {GONE}
  else sha256sum <"$f" || echo {UNREADABLE}; fi
done' sh"""
READ = f"{ENTER}exec xargs -0 tar -chf -"
KIND = 'if [ -d "$1" ]; then echo folder; elif [ -e "$1" ]; then echo file; else echo gone; fi'
MAKE = f'mkdir -p -- "$1" || exit {REFUSED_CODE}; {ENTER}xargs -0 mkdir -p --'
WRITE = f"{ENTER}exec tar -xof -"
FINISH = f"""{ENTER}xargs -0 sh -c 'for f do mv -f -- "$f{PART}" "$f" || exit 1; done' sh"""
LINK = f"""{ENTER}xargs -0 -n 2 sh -c 'rm -f -- "$1" && ln -s -- "$2" "$1"' sh"""
DISCARD = f"{ENTER}xargs -0 rm -f --"


class Failed(TfyardError):
    """A script ended with another code than 0."""

    def __init__(self, code: int, errors: str) -> None:
        super().__init__(errors or f"the command ended with code {code}")
        self.code = code


class ContainerAddress(Struct, frozen=True):
    namespace: str
    pod: str
    container: str


class ContainerFiles:
    def __init__(self, client: Client, where: ContainerAddress) -> None:
        self._client, self._where = client, where

    async def list(self, path: str) -> tuple[Tree, list[str]]:
        """Tree at the path, and messages about what may not be read."""
        errors = bytearray()
        data = b"".join([each async for each in self._run(LIST, path, errors=errors)])
        return _parse(path, data), _lines(errors)

    async def kind(self, path: str) -> str:
        """Kind of the path: folder, file or gone."""
        return (await self._all(KIND, path)).strip()

    async def states(self, folder: str, names: Iterable[str]) -> dict[str, str]:
        """Name -> sha256, or FOLDER, GONE or UNREADABLE."""
        asked = list(names)
        answers = (await self._all(STATES, folder, _names(asked))).split("\n")[:-1]
        if len(answers) != len(asked):
            raise Failed(1, f"{len(answers)} of {len(asked)} checksums came")
        return {name: text.partition(" ")[0] for name, text in zip(asked, answers, strict=True)}

    @asynccontextmanager
    async def read(self, folder: str, names: Iterable[str]) -> AsyncIterator[Archive]:
        """An archive of these files, chunk by chunk."""
        async with aclosing(self._run(READ, folder, _names(names))) as chunks:
            yield Archive(chunks)

    async def make(self, folder: str, names: Iterable[str]) -> None:
        """Makes the folder, and those in it."""
        await self._all(MAKE, folder, _names([".", *names]))

    async def write(self, folder: str, archive: AsyncIterator[bytes]) -> None:
        await self._all(WRITE, folder, archive)

    async def finish(self, folder: str, names: Iterable[str]) -> None:
        """Removes PART from the names of files that are complete."""
        await self._all(FINISH, folder, _names(names))

    async def discard(self, folder: str, names: Iterable[str]) -> None:
        await self._all(DISCARD, folder, _names(names))

    async def link(self, folder: str, links: dict[str, str]) -> None:
        pairs = (part for name, target in links.items() for part in (f"./{name}", target))
        await self._all(LINK, folder, _separated(pairs))

    async def _all(self, script: str, path: str, stdin: AsyncIterator[bytes] | None = None) -> str:
        data = b"".join([each async for each in self._run(script, path, stdin)])
        return data.decode("utf-8", "replace")

    async def _run(
        self,
        script: str,
        path: str,
        stdin: AsyncIterator[bytes] | None = None,
        errors: bytearray | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """Standard output of a script; raises Failed if it ends with another code than 0."""
        errors = bytearray() if errors is None else errors
        argv = ("sh", "-c", script, "sh", path)
        at = self._where
        command = PodCommand(
            namespace=at.namespace, pod=at.pod, container=at.container, argv=argv, stdin=stdin is not None
        )
        async with start(self._client, command) as process:
            feeding = asyncio.create_task(_feed(process, stdin))
            try:
                async for channel, data in process.output():
                    if channel == STDOUT:
                        yield data
                    elif channel == STDERR and len(errors) < MOST_ERRORS:
                        errors += data
                code = await process.wait()
            finally:
                feeding.cancel()
                (problem,) = await asyncio.gather(feeding, return_exceptions=True)
        if isinstance(problem, OSError):  # a file of this machine cannot be read
            raise problem
        if code:
            raise _failure(code, path, errors)


async def sealed(members: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """An archive of these members."""
    async for data in members:
        yield data
    yield END


async def _feed(process: RemoteProcess, stdin: AsyncIterator[bytes] | None) -> None:
    """Feeds the command; if `stdin` cannot be read to its end, the command must not wait for the rest."""
    if stdin is None:
        return
    try:
        async for data in stdin:
            await process.write(data)
    except OSError:
        await process.close_stdin()
        raise
    await process.close_stdin()


def _names(names: Iterable[str]) -> AsyncIterator[bytes]:
    """Names with ./ in front, so that none looks like an option."""
    return _separated(f"./{name}" for name in names)


async def _separated(parts: Iterable[str]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part.encode("utf-8", "surrogateescape") + b"\0"


def _failure(code: int, path: str, errors: bytearray) -> TfyardError:
    message = "; ".join(_lines(errors)[-3:])
    match code:
        case _ if code == MISSING_CODE:
            return CopyError(f"{path}: there is no such file or folder, or it may not be seen")
        case _ if code == NO_FILE_CODE:
            return CopyError(f"{path} is neither a file nor a folder")
        case _ if code == REFUSED_CODE:
            return CopyError(message or f"{path} may not be entered")
        case 126 | 127:
            return CopyError(f"the container lacks a tool that copying needs: {message}")
        case _ if any(word in message for word in FINAL):
            return CopyError(message)
        case _:
            return Failed(code, message)


def _lines(errors: bytearray) -> list[str]:
    return [shown(line) for line in errors.decode("utf-8", "surrogateescape").splitlines() if line.strip()]


def _parse(path: str, data: bytes) -> Tree:
    """Tree of a list: markers and the names that follow them; a name always begins with ./"""
    tokens = data.decode("utf-8", "surrogateescape").split("\0")
    if tokens[-2:] != ["e", ""]:
        raise Failed(1, "the list of files is not complete")
    names: dict[str, list[str]] = {"d": [], "o": []}
    files, links, marker, text = dict[str, int](), dict[str, str](), "", ""
    sizes: Iterator[str] = iter(())
    for token in tokens[:-2]:
        if not token.startswith("./") and token != ".":
            marker, _, text = token.partition("\n")
            sizes = iter(text.split())
            if marker == "F":
                return Tree(files={path.rpartition("/")[2]: int(text)}, is_file=True)
        elif marker == "f":
            files[token[2:]] = int(next(sizes, "-1"))
        elif marker == "l":
            links[token[2:]] = text.removesuffix("\n")
        elif token != ".":
            names[marker].append(token[2:])
    return _checked(Tree(files=files, folders=tuple(names["d"]), links=links, others=tuple(names["o"])))


def _checked(tree: Tree) -> Tree:
    """Refuses lists that changed meanwhile, and names by which a container could write elsewhere."""
    if -1 in tree.files.values():
        raise Failed(1, "files were removed while they were listed")
    names = (*tree.files, *tree.folders, *tree.links)
    if bad := [name for name in names if not is_safe(name)]:
        raise CopyError(f"refused, because these names lead out of the folder: {some(bad)}")
    return tree
