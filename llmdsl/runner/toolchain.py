"""Where a machine keeps the compilers that kernel languages call."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path


def find_tool(name: str) -> str | None:
    """Path of a CUDA tool: of CUDA_HOME, else on PATH, else from NVIDIA's wheels; None where there is none."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home and (own := shutil.which(name, path=str(Path(home) / "bin"))):
        return own
    wheels = Path(sysconfig.get_path("platlib"), "nvidia").glob("cu*/bin")
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, wheels)))


def tool_version(path: str) -> str | None:
    """What a tool's `--version` says, e.g. "13.0.88"; None where it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"release [\d.]+, V([\d.]+)|(\d+\.\d+(?:\.\d+)*)", done.stdout)
    return (version[1] or version[2]) if done.returncode == 0 and version else None
