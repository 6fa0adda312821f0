"""The sandbox from inside: what a candidate sees of the machine."""

from __future__ import annotations

import ast
import os
import textwrap
from pathlib import Path

import pytest

from llmdsl.errors import NoSandbox
from llmdsl.judge import pool
from llmdsl.judge.api import Judge
from llmdsl.runner import confine
from llmdsl.runner.confine import Plan, probe, sufficient


def outcome_of(body: str, *, unsafe: bool = False) -> str:
    """Message of the error that a candidate with this body raises."""
    source = "import os\n\ndef softmax(x):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    with Judge(tier="interpret", unsafe_no_sandbox=unsafe) as judge:
        verdict = judge.judge(source, task="softmax", dsl="triton")
    return verdict.diagnostics[0].message


def test_this_kernel_offers_a_sandbox() -> None:
    found = probe()
    assert found["net_namespace"] and found["pid_namespace"] and found["mount_namespace"], found


def test_what_a_candidate_sees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module on PYTHONPATH below /tmp is there (environments can lie there); /tmp is otherwise empty and writable."""
    (tmp_path / "llmdsl_probe_module.py").write_text("VALUE = 42\n")
    tmp_path.chmod(0o755)  # pytest makes it for root alone, and a candidate is nobody
    (tmp_path.parent / "secret").write_text("x")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    message = outcome_of(f"""
        import llmdsl_probe_module
        open("/tmp/scratch", "w").write("fine")
        raise ValueError(dict(
            value=llmdsl_probe_module.VALUE, key=os.environ.get("OPENAI_API_KEY"), uid=os.getuid(), pids=len(
            [p for p in os.listdir("/proc") if p.isdigit()]), secret=os.path.exists({str(tmp_path.parent / "secret")!r}),
            fds=sorted(int(f) for f in os.listdir("/proc/self/fd"))[:4], package=os.path.exists({str(Path(confine.__file__))!r}),
        ))
    """)
    seen = ast.literal_eval(message.partition(": ")[2])
    assert seen["value"] == 42 and seen["key"] is None and not seen["secret"] and not seen["package"]
    assert seen["uid"] != 0 or os.geteuid() != 0
    assert seen["pids"] == 2 and seen["fds"] == [0, 1, 2, 3]


def test_hidden_paths_are_not_visible_paths() -> None:
    package = str(Path(confine.__file__).parents[1])
    plan = Plan(scratch_root="/nowhere", hidden=(package,))
    assert not any(
        package == path or (package.startswith(path + "/") and "site-packages" not in path)
        for path in plan.paths()
    )


def test_sufficient_means_no_network_own_files_and_killable() -> None:
    full = {
        "net_namespace": True,
        "mount_namespace": True,
        "pid_namespace": True,
        "landlock": 7,
        "limits": {"memory": 1},
    }
    assert sufficient(full)
    for missing in ("net_namespace", "pid_namespace", "limits"):
        assert not sufficient({**full, missing: False})
    assert sufficient({**full, "mount_namespace": False})  # Landlock alone guards the files
    assert not sufficient({**full, "mount_namespace": False, "landlock": False})


def test_without_a_sandbox_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_enough", lambda features: False)
    with Judge(tier="interpret") as judge, pytest.raises(NoSandbox, match="--unsafe-no-sandbox"):
        judge.judge("", task="softmax", dsl="triton")


def test_unsandboxed_only_when_told() -> None:
    assert "PermissionError" not in outcome_of("raise ValueError(os.getuid())", unsafe=True)
