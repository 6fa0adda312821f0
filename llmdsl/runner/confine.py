"""The sandbox: what stands between a candidate and the machine.

A candidate runs three forks below the warm parent. The *warden* makes new namespaces, the *init* (process 1 of the
new PID namespace: when it dies, the kernel kills everything in there) builds a root of read-only binds and waits,
the *candidate process* drops to an unprivileged user in a user namespace of its own, closes its descriptors and adds
Landlock, seccomp and limits. Each layer is tried; what took hold is reported and goes into the verdict.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import syscalls as sys_

NOBODY = 65534
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf",
           "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/sys/devices/system")  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/random")


@dataclass(frozen=True)
class Limits:
    """Bounds of one candidate. Bytes, counts and seconds of CPU time."""

    memory: int = 4 << 30
    processes: int = 256
    file_size: int = 256 << 20
    scratch: int = 1 << 30
    open_files: int = 1024
    cpu_seconds: int = 3600


@dataclass(frozen=True)
class Plan:
    """What a candidate may see. `hidden` paths are covered by empty folders where a visible one contains them."""

    scratch_root: str
    visible: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    gpu: bool = False
    limits: Limits = field(default_factory=Limits)

    def paths(self) -> list[str]:
        """Folders to bind, parents first, none twice."""
        wanted = [*_SYSTEM, *self.visible, sys.prefix, sys.base_prefix, *_importable(self.hidden), *_tools()]
        kept: list[str] = []
        for path in sorted({os.path.abspath(p) for p in wanted if os.path.exists(p)}):
            if path != "/" and not any(path.startswith(k + "/") for k in kept if not os.path.islink(k)):
                kept.append(path)
        return kept

    def devices(self) -> list[str]:
        nvidia = (
            [str(p) for p in Path("/dev").glob("nvidia*")] if self.gpu else []
        )  # files and the caps folder
        return [d for d in (*_DEVICES, *nvidia) if os.path.exists(d)]


def _importable(hidden: tuple[str, ...]) -> list[str]:
    """Folders of sys.path, without those that lead to what must stay hidden (a checkout of this project)."""
    keep = [p for p in sys.path if p and os.path.isdir(p)]
    return [
        p
        for p in keep
        if not any(h.startswith(p.rstrip("/") + "/") and "site-packages" not in p for h in hidden)
    ]


def _tools() -> list[str]:
    """Prefixes under /opt that PATH leads to: compilers that the DSLs call."""
    return [
        os.path.dirname(p.rstrip("/")) for p in os.environ.get("PATH", "").split(":") if p.startswith("/opt/")
    ]


def probe() -> dict[str, bool]:
    """Which layers this kernel offers to this user, found by trying each in a child."""
    layers = {
        "user_namespace": lambda: sys_.unshare(sys_.CLONE_NEWUSER),
        "mount_namespace": lambda: _unshare(sys_.CLONE_NEWNS),
        "net_namespace": lambda: _unshare(sys_.CLONE_NEWNET),
        "pid_namespace": lambda: _unshare(sys_.CLONE_NEWPID),
        "ipc_namespace": lambda: _unshare(sys_.CLONE_NEWIPC),
        "landlock": lambda: sys_.landlock(["/"], []),
        "seccomp": lambda: (sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1), sys_.seccomp()),
    }
    found = {}
    for name, attempt in layers.items():
        pid = os.fork()
        if pid == 0:
            try:
                sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
                attempt()
                os._exit(0)
            except BaseException:
                os._exit(1)
        found[name] = os.waitpid(pid, 0)[1] == 0
    return found


def sufficient(in_force: dict[str, Any]) -> bool:
    """The least that counts as a sandbox: no network, no writes and no sight of the judge's files, killable as a whole."""
    files = in_force.get("mount_namespace") or in_force.get("landlock")
    return bool(
        in_force.get("net_namespace") and files and in_force.get("pid_namespace") and in_force.get("limits")
    )


def enter_namespaces() -> dict[str, bool]:
    """Warden: new namespaces for the process forked next. As an unprivileged user inside a new user namespace."""
    in_force = {}
    if os.geteuid() != 0:
        with suppress(OSError):
            uid, gid = os.getuid(), os.getgid()
            sys_.unshare(sys_.CLONE_NEWUSER)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    for name, flag in (("mount_namespace", sys_.CLONE_NEWNS), ("net_namespace", sys_.CLONE_NEWNET),
                       ("pid_namespace", sys_.CLONE_NEWPID), ("ipc_namespace", sys_.CLONE_NEWIPC),
                       ("uts_namespace", sys_.CLONE_NEWUTS)):  # fmt: skip
        try:
            sys_.unshare(flag)
            in_force[name] = True
        except OSError:
            in_force[name] = False
    return in_force


def build_root(plan: Plan) -> bool:
    """Init: a root of its own, made of read-only binds, empty scratch folders and the few devices needed."""
    root = plan.scratch_root
    try:
        sys_.mount("none", "/", None, sys_.MS_REC | sys_.MS_PRIVATE)
        sys_.mount("tmpfs", root, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, "size=64m,mode=755")
        # Scratch first: an environment can lie below /tmp, and must not be hidden by it.
        for path in ("/tmp", "/dev/shm"):
            os.makedirs(root + path, exist_ok=True)
            options = f"size={plan.limits.scratch},mode=1777"
            sys_.mount("tmpfs", root + path, "tmpfs", sys_.MS_NOSUID | sys_.MS_NODEV, options)
        for path in plan.paths():
            _bind(path, root)
        for path in plan.devices():
            _bind(path, root, read_only=False)
        for path in plan.hidden:
            if os.path.isdir(root + path):
                sys_.mount("tmpfs", root + path, "tmpfs", sys_.MS_RDONLY, "size=4k,mode=755")
        Path(root + "/etc").mkdir(exist_ok=True)
        Path(root + "/etc/passwd").write_text(f"candidate:x:{NOBODY}:{NOBODY}::/tmp:/bin/sh\n")
        os.makedirs(root + "/proc", exist_ok=True)
        with suppress(OSError):  # refused in some containers; then there is simply none
            sys_.mount("proc", root + "/proc", "proc", sys_.MS_NOSUID | sys_.MS_NODEV)
        sys_.pivot_root(root)
        with suppress(OSError):
            sys_.mount(
                "none", "/", None, sys_.MS_BIND | 32 | sys_.MS_RDONLY
            )  # remount the root itself read-only
        return True
    except OSError as error:
        os.write(2, f"sandbox: {error}\n".encode())
        return False


def _bind(path: str, root: str, *, read_only: bool = True) -> None:
    target = root + path
    if os.path.islink(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with suppress(FileExistsError):
            os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        Path(target).touch()
    sys_.mount(path, target, None, sys_.MS_BIND | sys_.MS_REC)
    if read_only:
        sys_.make_read_only(target)


def drop_privileges(plan: Plan, in_force: dict[str, Any]) -> None:
    """Candidate process: unprivileged user, own user namespace, Landlock, seccomp, limits. Updates `in_force`."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    in_force["uid"] = os.getuid()
    # A user namespace per candidate gives it a process count of its own: one fork bomb cannot starve the others.
    in_force["user_namespace"] = _took(lambda: sys_.unshare(sys_.CLONE_NEWUSER))
    sys_.drop_capabilities()
    sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    rooted = in_force.get("mount_namespace")
    readable = ["/"] if rooted else [*plan.paths(), *plan.devices(), "/proc"]
    # The GPU driver names its threads in /proc; a rooted candidate has one of its own.
    writable = (
        ["/tmp", "/dev/shm", "/proc", *plan.devices()] if rooted else [plan.scratch_root, *plan.devices()]
    )
    in_force["landlock"] = _took(lambda: sys_.landlock(readable, writable))
    _limit(plan)
    in_force["limits"] = asdict(plan.limits)
    in_force["seccomp"] = _took(sys_.seccomp)


def _limit(plan: Plan) -> None:
    limits = plan.limits
    for what, value in (
        # A GPU context reserves far more address space than it uses, so only data counts there.
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_AS, resource.RLIM_INFINITY if plan.gpu else 4 * limits.memory),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        bound = (
            value if hard == resource.RLIM_INFINITY or value == resource.RLIM_INFINITY else min(value, hard)
        )
        bound = hard if value == resource.RLIM_INFINITY else bound
        resource.setrlimit(what, (bound, bound))


def _took(attempt: Any) -> Any:
    try:
        result = attempt()
        return True if result is None else result
    except OSError:
        return False


def _unshare(flag: int) -> None:
    if os.geteuid() != 0:
        sys_.unshare(sys_.CLONE_NEWUSER)
    sys_.unshare(flag)
