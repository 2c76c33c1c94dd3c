"""Linux namespaces for containers: private views of the file system, so that their mount paths are the same as in
a cluster, and a PID namespace that ends with the supervisor.

The root of a view is a tmpfs with everything of the old one bound into it: `/out` can exist in it without being
created on the real disk. That takes milliseconds, and most tasks of a job have the same mounts, so a view is made
once and joined by all of them. In a PID namespace every container has a view, because each needs a /proc that
shows its own namespace. Needs root or unprivileged user namespaces; `is_allowed` tries. Part of it runs between
fork and exec, so it uses nothing but the standard library and the C library.

When the first process of a PID namespace ends, the kernel kills all others in it, however deep and however well
hidden. Here that process, the anchor, does nothing but end with the supervisor: no container outlives it, even if
the supervisor and tfyard are killed at the same instant. The supervisor itself stays outside, so that the process
ids that it reports are valid outside.
"""

import ctypes
import errno
import os
import signal
import stat
from collections.abc import Sequence

from tfyard.node.orphans import die_with, reap_children

TYPE_CHECKING = False  # importing `typing` takes 9 ms
if TYPE_CHECKING:
    import socket

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWUSER = 0x00020000, 0x04000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC = 1, 2, 4, 8, 32, 4096, 16384
MNT_DETACH = 2
MS_UNBINDABLE, MS_SLAVE = 1 << 17, 1 << 19
NEW_ROOT = "/tmp"
"""Directory where the new root is assembled; the old one of that name is bound back into it."""

Mount = tuple[str, str, bool]
"""(directory or file here, path there, read only)."""
PROBE: Sequence[Mount] = [("/", "/tfyard-probe/a", True)]
"""A view that needs every permission that any view needs."""

ORPHAN_ENDED = b"\0"
"""Message of the anchor that a child of its own has ended, whose children may be orphans now."""

_MARK = ".tfyard-private"

_libc = ctypes.CDLL(None, use_errno=True)


class MountView:
    """A mount namespace and its root, kept alive by open descriptors."""

    def __init__(self, user: int | None, mounts: int, root: int) -> None:
        self._user, self._mounts, self._root = user, mounts, root

    def join(self) -> None:
        """Move this process, which must have no other threads, into the view."""
        if self._user is not None:
            _check(_libc.setns(self._user, CLONE_NEWUSER), "setns")
        _check(_libc.setns(self._mounts, CLONE_NEWNS), "setns")
        os.fchdir(self._root)
        os.chroot(".")

    def close(self) -> None:
        """Close the descriptors. Processes in the view stay there; the kernel removes it with the last of them."""
        for descriptor in filter(None, (self._user, self._mounts, self._root)):
            os.close(descriptor)


def make_view(mounts: Sequence[Mount], points: Sequence[str] = (), *, own_proc: bool = False) -> MountView:
    """A view in which each directory appears at its path and, with `own_proc`, /proc shows the PID namespace of
    our children. `points`: paths at which there must be a file, for `bind_files`. A child makes it, because this
    process must stay in its own mount namespace."""
    answers, answer = os.pipe()
    waits, wait = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(wait)
        _make_and_wait(mounts, points, own_proc, answer, waits)
    for end in (answer, waits):
        os.close(end)
    try:
        refusal = os.read(answers, 4096)
        if refusal != b"ready":
            raise OSError(refusal.decode(errors="replace"))
        return open_view(pid)
    finally:
        os.close(wait)
        os.close(answers)
        os.waitpid(pid, 0)


def is_allowed() -> bool:
    """Whether views can be made, by trying: kernels, containers and security modules forbid it in many ways."""
    try:
        make_view(PROBE)
    except OSError:
        return False
    return True


def unshare(kind: int) -> None:
    """Enter a new namespace: directly if permitted, else in a new user namespace, as the same user."""
    if _libc.unshare(kind) == 0:
        return
    if ctypes.get_errno() != errno.EPERM:
        _check(-1, "unshare")
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(CLONE_NEWUSER | kind), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def unshare_mounts(also: int = 0) -> None:
    """Enter a mount namespace, and those of `also`, whose mounts no other process sees."""
    unshare(CLONE_NEWNS | also)
    _mount("none", "/", "", MS_REC | MS_SLAVE)  # mounts made outside later are seen too


def join_network(path: str) -> None:
    """Move this thread into the network namespace at the path."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(descriptor, CLONE_NEWNET), "setns")
    finally:
        os.close(descriptor)


def enter_those_of(pid: int) -> None:
    """Move this process, which must have no other threads, into the namespaces and the root of another one. Its
    PID namespace only gets later children of this process."""
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    is_elsewhere = not os.path.samestat(os.fstat(root), os.stat("/"))
    kinds = {"user": CLONE_NEWUSER, "pid": CLONE_NEWPID, "net": CLONE_NEWNET, "mnt": CLONE_NEWNS}
    theirs = {name: os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in kinds}
    own = {name: os.stat(f"/proc/self/ns/{name}") for name in kinds}
    for name, descriptor in theirs.items():  # the user namespace first: it gives the right to the others
        if not os.path.samestat(os.fstat(descriptor), own[name]):
            _check(_libc.setns(descriptor, kinds[name]), f"setns {name}")
    if is_elsewhere or not os.path.samestat(os.fstat(theirs["mnt"]), own["mnt"]):
        os.fchdir(root)
        os.chroot(".")


def mount_memory(directory: str, size: int) -> None:
    """Mount a tmpfs of so many bytes; 0: half of the machine's memory."""
    options = f"mode=0777,size={size}" if size else "mode=0777"
    _mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV, options)


def unmount(directory: str) -> None:
    """Unmount a directory at once; its memory is free when the last file in it is closed."""
    _check(_libc.umount2(directory.encode(), MNT_DETACH), f"umount {directory}")


def start_anchor(wake: "socket.socket") -> int | None:
    """Put all further children of this process into a PID namespace. Returns the pid of its anchor, or None where
    that is not allowed. Orphans become children of the anchor, which reports their ends on `wake`."""
    if not _may_unshare_pids():
        return None
    unshare(CLONE_NEWPID)
    # Blocked for good in the anchor: the handlers are the supervisor's, and no container may end it by a signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    supervisor, pid = os.getpid(), os.fork()
    if pid == 0:
        _reap_orphans(wake, supervisor)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _make_and_wait(
    mounts: Sequence[Mount], points: Sequence[str], own_proc: bool, answer: int, waits: int
) -> None:
    try:
        _enter(mounts, points, own_proc)
        os.write(answer, b"ready")
        os.read(waits, 1)
    except OSError as error:
        os.write(answer, str(error).encode())
    finally:
        os._exit(0)


def open_view(pid: int) -> MountView:
    """The view that another process is in."""
    own = os.stat("/proc/self/ns/user").st_ino
    user = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    mounts = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_CLOEXEC)
    return MountView(user if os.fstat(user).st_ino != own else None, mounts, root)


def _enter(mounts: Sequence[Mount], points: Sequence[str], own_proc: bool) -> None:
    """Move this process into a view of its own."""
    unshare_mounts()
    if mounts or points:
        _change_root(mounts, points)
    if own_proc:
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)


def _change_root(mounts: Sequence[Mount], points: Sequence[str]) -> None:
    # Opened inside the new namespace (else they cannot be bound), and before the new root covers any of them.
    sources = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _, _ in mounts]
    old = os.open("/", os.O_PATH | os.O_CLOEXEC)
    keep = os.open(NEW_ROOT, os.O_PATH | os.O_CLOEXEC)
    _mount("tmpfs", NEW_ROOT, "tmpfs", 0, "mode=0755")
    _mount("none", NEW_ROOT, "", MS_UNBINDABLE)  # else it would be bound into itself with all that is below /
    _bind_entries(f"/proc/self/fd/{old}", NEW_ROOT, {NEW_ROOT[1:]: f"/proc/self/fd/{keep}"})
    os.chroot(NEW_ROOT)  # now, because links such as /var/run must lead to places in the new root
    os.chdir("/")
    writable: list[str] = []
    # Outer ones first, whatever their order: a volume may be mounted inside another.
    for source, (_, target, read_only) in sorted(zip(sources, mounts, strict=True), key=_target):
        point = _make_mount_point(target, stat.S_ISDIR(os.fstat(source).st_mode), writable)
        _mount(f"/proc/self/fd/{source}", point, "", MS_BIND | MS_REC)
        if read_only:
            _mount("none", point, "", MS_REMOUNT | MS_BIND | MS_RDONLY)
        else:
            writable.append(f"{point}/")
    for point in points:
        _make_mount_point(point, is_directory=False, writable=writable)


def bind_files(files: Sequence[Mount]) -> None:
    """Mount files that only this process sees. It must have joined a view that has their paths."""
    unshare(CLONE_NEWNS)
    for source, target, _ in files:
        _mount(source, target, "", MS_BIND)


def _target(pair: tuple[int, Mount]) -> str:
    return pair[1][1]


def _bind_entries(source: str, target: str, instead: dict[str, str] | None = None) -> None:
    """Bind everything in a directory into another: directories, files and devices as mounts, links as links."""
    for name in os.listdir(source):
        origin, entry = (instead or {}).get(name, f"{source}/{name}"), f"{target}/{name}"
        if os.path.islink(origin) and name not in (instead or {}):
            os.symlink(os.readlink(origin), entry)
        elif os.path.isdir(origin):
            os.mkdir(entry)
            _mount(origin, entry, "", MS_BIND | MS_REC)
        elif os.path.exists(origin):
            _touch(entry)
            _mount(origin, entry, "", MS_BIND)


def _make_mount_point(target: str, is_directory: bool, writable: list[str]) -> str:
    """Make a directory or file to mount on. Where it is missing inside a directory of the real disk, that one is
    replaced by a private copy of its entries, so nothing is left behind on the disk. But in a `writable` volume it
    is created, as in a cluster: what the container writes beside it must reach the volume."""
    point, parts = "", [*filter(None, target.split("/"))]
    for number, part in enumerate(parts, 1):
        child = f"{point}/{part}"
        if not os.path.exists(child):
            is_volume = f"{point}/".startswith(tuple(writable))
            if point and not is_volume and not _is_private(point):
                _make_private(point)
            if number < len(parts) or is_directory:
                os.mkdir(child)
            else:
                _touch(child)
        point = child
    return point


def _is_private(directory: str) -> bool:
    """Whether we made this directory: then it is on the tmpfs of the new root, or on one of our own."""
    is_marked = os.path.exists(f"{directory}/{_MARK}")
    return is_marked or os.stat(directory).st_dev == os.stat("/").st_dev


def _make_private(directory: str) -> None:
    origin = os.open(directory, os.O_PATH | os.O_CLOEXEC)
    _mount("tmpfs", directory, "tmpfs", 0, f"mode={os.fstat(origin).st_mode & 0o7777:o}")
    _bind_entries(f"/proc/self/fd/{origin}", directory)
    _touch(f"{directory}/{_MARK}")


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    texts = source.encode(), target.encode(), kind.encode() or None
    result = _libc.mount(*texts, ctypes.c_ulong(flags), options.encode() or None)
    _check(result, f"mount {source} on {target}")


def _check(result: int, call: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")


def _may_unshare_pids() -> bool:
    """Whether a PID namespace is permitted. A child tries: `unshare` cannot be undone for later children."""
    pid = os.fork()
    if pid == 0:
        _try_pids()
    return os.waitpid(pid, 0)[1] == 0


def _try_pids() -> None:
    try:
        unshare(CLONE_NEWPID)
        make_view(PROBE, own_proc=True)
    except OSError:
        os._exit(1)
    os._exit(0)


def _reap_orphans(wake: "socket.socket", supervisor: int) -> None:
    """Reap orphans as long as the supervisor lives."""
    try:
        die_with(supervisor)
        while True:
            signal.sigwait([signal.SIGCHLD])
            reap_children()
            _wake_up(wake)
    finally:
        os._exit(0)


def _wake_up(wake: "socket.socket") -> None:
    try:
        wake.send(ORPHAN_ENDED)
    except BlockingIOError:
        return  # full: the supervisor has not read the earlier ones yet
