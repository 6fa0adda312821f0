"""The warm parent: imports the DSL once, then forks one confined process tree per candidate.

It answers the judge on one socket: {"kind": "fork", "id", "plan", "limits", "sandbox", "tier",
"arch"} with two descriptors (the candidate's
control socket, the pipe for its output) gets {"kind": "forked", "pid"}; when the tree is gone, {"kind": "gone", "id",
"status"} follows. It never reads candidate source and opens no GPU context.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from . import candidate, confine, wire
from . import syscalls as sys_
from .dsls import MissingTool, load_backend


def serve(control_fd: int) -> None:
    """Runs until the judge closes its end."""
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    control = socket.socket(fileno=control_fd)
    hello, _ = wire.receive(control)
    try:
        if hello.get("wire") != wire.WIRE_VERSION:
            raise RuntimeError(f"judge speaks wire {hello.get('wire')}, this runner {wire.WIRE_VERSION}")
        backend = load_backend(hello["backend"])
        backend.warm(hello["tier"])
        versions = _versions(hello["packages"]) | backend.versions()
    except Exception as error:
        missing = isinstance(error, (ModuleNotFoundError, MissingTool))
        wire.send(
            control, {"kind": "broken", "missing": missing, "error": f"{type(error).__name__}: {error}"}
        )
        return
    wire.send(control, {"kind": "warm", "versions": versions, "probe": confine.probe()})
    children: dict[int, tuple[int, int]] = {}  # pidfd → (pid, candidate id)
    while True:
        ready, _, _ = select.select([control, *children], [], [])
        for pidfd in [r for r in ready if r is not control]:
            pid, number = children.pop(pidfd)
            os.close(pidfd)
            _, status = os.waitpid(pid, 0)
            wire.send(control, {"kind": "gone", "id": number, "status": os.waitstatus_to_exitcode(status)})
        if control in ready:
            try:
                message, fds = wire.receive(control, max_fds=3)
            except wire.Closed:
                return
            myself = os.pidfd_open(os.getpid())
            pid = os.fork()
            if pid == 0:
                control.close()
                _die_with(myself)
                _warden(message, fds, backend)
            for fd in (*fds, myself):
                os.close(fd)
            children[os.pidfd_open(pid)] = (pid, message["id"])
            wire.send(control, {"kind": "forked", "id": message["id"], "pid": pid})


def _versions(packages: list[str]) -> dict[str, str]:
    from importlib import metadata

    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _warden(message: dict[str, Any], fds: list[int], backend: Any) -> None:
    """Never returns. Exits with the candidate's status; a signal becomes 128 + its number."""
    code = 70
    try:
        limits = confine.Limits(**message["limits"])
        plan = confine.Plan(**{**message["plan"], "limits": limits})
        in_force: dict[str, Any] = confine.enter_namespaces() if message["sandbox"] else {}
        myself = os.pidfd_open(os.getpid())
        init = os.fork()
        if init == 0:
            _die_with(myself)
            _init(plan, in_force, message, fds, backend)
        for fd in fds:
            os.close(fd)
        code = _exit_code(os.waitpid(init, 0)[1])
    finally:
        os._exit(code)


def _init(
    plan: confine.Plan, in_force: dict[str, Any], message: dict[str, Any], fds: list[int], backend: Any
) -> None:
    """Process 1 of the candidate's namespace: waits for the candidate, reaps orphans, dies with the warden."""
    code = 70
    try:
        sys_.prctl(sys_.PR_SET_DUMPABLE, 0)  # no candidate may trace it or open its descriptors
        if in_force.get("mount_namespace"):
            in_force["mount_namespace"] = confine.build_root(plan)
        child = os.fork()
        if child == 0:
            _candidate(plan, in_force, message, fds, backend)
        for fd in fds:
            os.close(fd)
        while True:
            pid, status = os.wait()
            if pid == child:
                code = _exit_code(status)
                break
    finally:
        os._exit(code)  # the kernel kills whatever the candidate left behind in this namespace


def _candidate(plan: confine.Plan, in_force: dict[str, Any], message: dict[str, Any], fds: list[int],
               backend: Any) -> None:  # fmt: skip
    code = 71
    try:
        control_fd, output_fd = fds
        sys_.prctl(sys_.PR_SET_DUMPABLE, 1)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        control = socket.socket(fileno=os.dup2(control_fd, 3))
        os.closerange(4, 4096)
        scratch = "/tmp" if in_force.get("mount_namespace") else plan.scratch_root
        os.makedirs(scratch + "/work", exist_ok=True)
        os.chdir(scratch + "/work")
        if os.geteuid() == 0:
            os.chown(scratch + "/work", confine.NOBODY, confine.NOBODY)
        os.environ.update(
            HOME=scratch, TMPDIR=scratch, USER="candidate", TRITON_CACHE_DIR=scratch + "/triton"
        )
        if message["sandbox"]:
            confine.drop_privileges(plan, in_force)
        in_force["sufficient"] = confine.sufficient(in_force)
        if message["sandbox"] and not in_force["sufficient"]:
            raise RuntimeError(f"the sandbox did not take hold: {in_force}")
        session = candidate.Session(backend, message["tier"], message["arch"], scratch + "/work")
        # Whatever fails before this frame is the runner's fault, whatever fails after it the candidate's.
        wire.send(control, {"kind": "ready", "sandbox": json.loads(json.dumps(in_force))})
        session.serve(control)
        code = 0
    except wire.Closed:
        code = 0  # the judge has what it wants
    except BaseException as error:
        os.write(2, f"runner: {type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(code)


def _die_with(parent: int) -> None:
    """Ties this process's life to its parent's (`parent` is a pidfd of it), also where the parent is dead already."""
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([parent], [], [], 0)[0]:
        os._exit(70)
    os.close(parent)


def _exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
