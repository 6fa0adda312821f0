"""The command line as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from llmdsl.cli.app import main; main()"]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(ROOT),
    "COLUMNS": "120",
    "OPENAI_API_KEY": "none",
    "LLMDSL_API_KEY": "none",
}


def start(*arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """`llmdsl …`, in a process group of its own, with interrupts as a terminal has them."""
    return subprocess.Popen(
        [*prefix, *COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def llmdsl(
    *arguments: object, prefix: tuple[str, ...] = (), timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Runs `llmdsl …` to its end."""
    process = start(*arguments, prefix=prefix)
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
