"""The Linux calls that Python's standard library lacks, through ctypes. Errors are OSError."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)
# From <linux/mount.h>, <linux/sched.h>, <linux/prctl.h>, <linux/landlock.h>, <linux/seccomp.h>.
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
MNT_DETACH = 2
CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 4, 24, 38, 22

_NUMBERS = {
    "x86_64": {"pivot_root": 155, "mount_setattr": 442, "landlock": 444, "capset": 126},
    "aarch64": {"pivot_root": 41, "mount_setattr": 442, "landlock": 444, "capset": 91},
}.get(platform.machine(), {})

# Denied to candidates: debugging others, changing namespaces or mounts, and kernel interfaces known for escapes.
_DENIED = {
    "x86_64": {"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "mount": 165, "umount2": 166,
               "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298,
               "keyctl": 250, "add_key": 248, "request_key": 249, "userfaultfd": 323, "io_uring_setup": 425,
               "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 246, "init_module": 175,
               "finit_module": 313, "delete_module": 176, "open_by_handle_at": 304, "pidfd_getfd": 438,
               "kcmp": 312, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
               "mount_setattr": 442, "acct": 163, "swapon": 167, "reboot": 169, "quotactl": 179},
    "aarch64": {"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "mount": 40, "umount2": 39,
                "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268, "bpf": 280, "perf_event_open": 241,
                "keyctl": 219, "add_key": 217, "request_key": 218, "userfaultfd": 282, "io_uring_setup": 425,
                "io_uring_enter": 426, "io_uring_register": 427, "kexec_load": 104, "init_module": 105,
                "finit_module": 273, "delete_module": 106, "open_by_handle_at": 265, "pidfd_getfd": 438,
                "kcmp": 272, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsmount": 432,
                "mount_setattr": 442, "acct": 89, "swapon": 224, "reboot": 142, "quotactl": 60},
}.get(platform.machine(), {})  # fmt: skip
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435


def _check(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def _syscall(name: str, *args: object) -> int:
    if name not in _NUMBERS:
        raise OSError(38, f"{name}: unknown on {platform.machine()}")
    return _check(_libc.syscall(_NUMBERS[name], *args), name)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    _check(
        _libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, options.encode()),
        f"mount {target}",
    )


def make_read_only(target: str) -> None:
    """The mount at `target` and all below it: read-only, no set-uid. Devices stay usable (GPU nodes are binds)."""
    attributes = struct.pack("=QQQQ", 0x1 | 0x2, 0, 0, 0)  # MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID
    _syscall("mount_setattr", -100, target.encode(), 0x8000, attributes, len(attributes))  # AT_RECURSIVE


def pivot_root(new_root: str) -> None:
    """Makes `new_root` (a mount point) the root and drops the old one."""
    os.chdir(new_root)
    _syscall("pivot_root", b".", b".")
    _check(_libc.umount2(b".", MNT_DETACH), "umount2")
    os.chdir("/")


def prctl(option: int, value: int, extra: object = 0) -> None:
    _check(_libc.prctl(option, value, extra, 0, 0), f"prctl {option}")


def drop_capabilities() -> None:
    """Empties every capability set of this process, for good together with no_new_privs."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # past the kernel's last one, or none held
    header = struct.pack("=Ii", 0x20080522, 0)
    _syscall("capset", header, bytes(24))


def landlock_abi() -> int:
    """Version of Landlock that the kernel offers, 0 for none."""
    try:
        return _syscall("landlock", None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def landlock(readable: list[str], writable: list[str]) -> int:
    """Confines this process: reads and runs files below `readable`, writes only below `writable`, no TCP.

    Returns the ABI in force. Scopes (ABI 6) also bar signals and abstract sockets to outside.
    """
    abi = landlock_abi()
    if not abi:
        raise OSError(38, "landlock: not offered")
    read = (1 << 0) | (1 << 2) | (1 << 3)  # execute, read file, read dir
    every = (1 << 13) - 1
    every |= (1 << 13) if abi >= 2 else 0  # refer
    every |= (1 << 14) if abi >= 3 else 0  # truncate
    every |= (1 << 15) if abi >= 5 else 0  # ioctl on devices
    network = 0b11 if abi >= 4 else 0
    scoped = 0b11 if abi >= 6 else 0
    attributes = struct.pack("=QQQ", every, network, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _syscall("landlock", attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    files_only = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)
    try:
        for paths, access in ((readable, read), (writable, every)):
            for path in paths:
                if not os.path.exists(path):
                    continue
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
                allowed = access & every & (every if os.path.isdir(path) else files_only)
                rule = struct.pack("=Qi", allowed, fd)
                number = _NUMBERS["landlock"] + 1  # landlock_add_rule
                try:
                    _check(_libc.syscall(number, ruleset, 1, rule, 0), f"landlock_add_rule {path}")
                finally:
                    os.close(fd)
        _check(_libc.syscall(_NUMBERS["landlock"] + 2, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return abi


def seccomp() -> None:
    """Denies `_DENIED` with EPERM, new user namespaces too; clone3 is ENOSYS, so that libc falls back to clone."""
    arch = _AUDIT_ARCH.get(platform.machine())
    if arch is None:
        raise OSError(38, f"seccomp: no filter for {platform.machine()}")
    load, jump_eq, jump_set, ret = 0x20, 0x15, 0x45, 0x06
    allow, errno = 0x7FFF0000, 0x00050000
    program = [(load, 0, 0, 4), (jump_eq, 1, 0, arch), (ret, 0, 0, 0x80000000), (load, 0, 0, 0)]
    if platform.machine() == "x86_64":  # x32 system calls would slip past the numbers below
        program += [(0x35, 0, 1, 0x40000000), (ret, 0, 0, errno | 1)]
    for number in _DENIED.values():
        program += [(jump_eq, 0, 1, number), (ret, 0, 0, errno | 1)]
    program += [(jump_eq, 0, 1, _CLONE3), (ret, 0, 0, errno | 38)]
    program += [(jump_eq, 0, 3, _CLONE[platform.machine()]), (load, 0, 0, 16), (jump_set, 0, 1, CLONE_NEWUSER),
                (ret, 0, 0, errno | 1), (ret, 0, 0, allow)]  # fmt: skip
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(buffer))
    prctl(PR_SET_SECCOMP, 2, ctypes.c_char_p(header))
