"""`llmdsl eval` from its arguments to its exit code, against a server of its own."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from llmdsl.score.report import Report
from llmdsl.store.history import history
from llmdsl.store.run import RunFolder
from tests.cli.running import llmdsl, start
from tests.cli.server import Server, serving

HOSTILE = "I will not. \x1b]0;owned\x07\x1b[2J [red]markup[/red] \u202e"
FOREIGN = "```python\nimport torch\n\n\ndef softmax(x):\n    return torch.softmax(x, dim=-1)\n```"


def arguments(server: Server, out: Path, *more: object) -> list[object]:
    return ["eval", "--model", "openai-compat/tiny", "--base-url", server.url, "--dsl", "triton", "--tasks", "softmax",
            "--tier", "interpret", "--context", "signature", "--out", out, *more]  # fmt: skip


def outcomes(path: Path) -> list[str | None]:
    attempts = history(RunFolder.open(path).records())
    return [attempt.verdict and attempt.verdict.verdict.outcome.value for attempt in attempts.values()]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """One sample of two attempts: prose with terminal sequences first, torch's own softmax second."""
    path = tmp_path_factory.mktemp("run") / "run"

    def reply(body: dict[str, Any]) -> str:
        return HOSTILE if len(body["messages"]) == 2 else FOREIGN

    with serving(reply) as server:
        done = llmdsl(*arguments(server, path, "--attempts", 2, "--json"))
    assert len(server.bodies) == 2
    return path, done


def test_json_is_one_object_and_nothing_else(run: tuple[Path, Any]) -> None:
    path, done = run
    assert done.returncode == 0, done.stderr
    report = Report.model_validate(json.loads(done.stdout))
    assert [row.outcome for row in report.attempts] == ["no_code", "foreign_kernel"]
    assert report.attempts[0].input_tokens == 1000 and report.attempts[0].served_model == "tiny"
    assert report.scores[0].pass_after[2].value == 0.0
    assert "\x1b" not in done.stdout and done.stdout.isascii()
    again = llmdsl("report", path, "--json")
    assert again.returncode == 0 and json.loads(again.stdout) == json.loads(done.stdout), (
        "from the records alone"
    )


def test_report_shows_every_attempt(run: tuple[Path, Any]) -> None:
    done = llmdsl("report", run[0])
    assert (
        done.returncode == 0
        and "no_code → foreign_kernel" in done.stdout
        and "pass after 2 attempts" in done.stdout
    )


def test_show_prints_prompt_answer_candidate_and_diagnostics(run: tuple[Path, Any]) -> None:
    done = llmdsl("show", run[0], "softmax")
    assert done.returncode == 0
    for part in ("Prompt, system", "# Softmax over the last dimension", "I will not.", "Verdict: no_code", "finish reason: stop",
                 "Candidate", "return torch.softmax(x, dim=-1)", "Verdict: foreign_kernel", "torch._softmax", "triton 3."):  # fmt: skip
        assert part in done.stdout
    assert "\x1b" not in done.stdout and "\u202e" not in done.stdout, "no terminal obeys an answer"
    assert "␛]0;owned␇␛[2J [red]markup[/red] <U+202E>" in done.stdout


def test_show_of_one_attempt_and_as_json(run: tuple[Path, Any]) -> None:
    done = llmdsl("show", run[0], "--attempt", 2, "--no-prompt")
    assert (
        "Verdict: foreign_kernel" in done.stdout
        and "no_code" not in done.stdout
        and "Prompt" not in done.stdout
    )
    shown = json.loads(llmdsl("show", run[0], "--json").stdout)
    assert [each["key"]["attempt"] for each in shown["attempts"]] == [1, 2]
    assert shown["attempts"][0]["completion"]["completion"]["text"] == HOSTILE
    assert "Did you mean 'softmax'" in llmdsl("show", run[0], "softmaks").stderr


def test_a_changed_config_is_refused_with_the_difference(run: tuple[Path, Any]) -> None:
    done = llmdsl("eval", "--resume", run[0], "--samples", 3, "--temperature", 0.5)
    assert done.returncode == 2
    assert "samples: the run has 1, now it would be 3" in done.stderr
    assert "sampling.temperature: the run has null, now it would be 0.5" in done.stderr


def test_resume_and_out_are_not_both(run: tuple[Path, Any]) -> None:
    done = llmdsl("eval", "--resume", run[0], "--out", "elsewhere")
    assert done.returncode == 2 and "leave it out" in done.stderr


def test_resume_of_a_complete_run_asks_nothing(run: tuple[Path, Any]) -> None:
    done = llmdsl("eval", "--resume", run[0], "--json")  # the server is gone
    assert done.returncode == 0 and json.loads(done.stdout) == json.loads(run[1].stdout)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["eval"], "--model oracle"),
        (["eval", "--model", "opneai/x"], "openai"),
        (["eval", "--model", "oracle", "--tasks", "softmaks"], "Did you mean 'softmax'"),
        (["eval", "--model", "oracle", "--dsl", "tritan"], "Did you mean 'triton'"),
        (["eval", "--resume", "/nowhere"], "no run at /nowhere"),
        (
            ["eval", "--model", "openai-compat/x", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1"],
            "--max-tokens",
        ),
        (["report", "/nowhere"], "no run at /nowhere"),
        (["show", "/nowhere"], "no run at /nowhere"),
    ],
)
def test_wrong_usage_is_told_what_to_type(command: list[str], says: str) -> None:
    done = llmdsl(*command)
    assert done.returncode == 2 and says in " ".join(done.stderr.split()) and "Traceback" not in done.stderr


def test_dry_run_asks_nothing_and_writes_nothing(tmp_path: Path) -> None:
    with serving(lambda body: FOREIGN) as server:
        ahead = arguments(server, tmp_path / "run", "--samples", 3, "--attempts", 2, "--dry-run")
        done = llmdsl(*ahead, "--json")
        assert done.returncode == 0 and not server.bodies and not (tmp_path / "run").exists()
        (estimate,) = json.loads(done.stdout)["estimates"]
        assert (
            estimate["requests"] == 3
            and estimate["requests_at_most"] == 6
            and estimate["input_tokens"] > 1000
        )
        assert estimate["cost"] is None or estimate["cost"] == 0
        assert "Dry run: nothing was asked" in llmdsl(*ahead).stdout


def test_the_budget_ends_a_run_cleanly(tmp_path: Path) -> None:
    with serving(lambda body: "no") as server:
        done = llmdsl(
            *arguments(server, tmp_path / "run", "--samples", 20, "--max-tokens", 8000, "--concurrency", 2)
        )
        assert done.returncode == 5 and f"--resume {tmp_path / 'run'} --max-cost" in done.stderr
        asked = len(server.bodies)
        assert 3 <= asked <= 8 and len(outcomes(tmp_path / "run")) == asked


def test_a_provider_that_is_down_is_held_against_nobody(tmp_path: Path) -> None:
    done = llmdsl(
        "eval",
        "--model",
        "mock/fail",
        "--tasks",
        "softmax",
        "--tier",
        "interpret",
        "--out",
        tmp_path / "run",
        "--json",
    )
    assert done.returncode == 4 and "--resume" in done.stderr and "server_error" in done.stderr
    report = Report.model_validate(json.loads(done.stdout))
    assert report.scores[0].beside == {"infra_error": 1} and report.scores[0].pass_at == {}


def test_an_interrupt_keeps_what_was_answered(tmp_path: Path) -> None:
    with serving(lambda body: "no", seconds=0.3) as server:
        process = start(*arguments(server, tmp_path / "run", "--samples", 100, "--concurrency", 2))
        while len(server.bodies) < 6:
            time.sleep(0.05)
            assert process.poll() is None, process.communicate()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (
            process.returncode == 130
            and f"llmdsl eval --resume {tmp_path / 'run'}" in err
            and "Traceback" not in err
        )
        assert len(outcomes(tmp_path / "run")) >= len(server.bodies) - 2


NO_NAMESPACES = ("unshare", "--user", "--map-root-user", "sh", "-c",
                 'echo 0 > /proc/sys/user/max_user_namespaces; echo 0 > /proc/sys/user/max_pid_namespaces; exec "$@"', "sh")  # fmt: skip


def test_no_sandbox_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with serving(lambda body: FOREIGN) as server:
        done = llmdsl(*arguments(server, tmp_path / "run"), prefix=NO_NAMESPACES)
        assert done.returncode == 3, done.stderr
        assert "--unsafe-no-sandbox" in done.stderr and not server.bodies


def test_the_oracle_and_its_replay(tmp_path: Path) -> None:
    common = ("--tasks", "vector_add,softmax", "--tier", "interpret", "--json")
    done = llmdsl("eval", "--model", "oracle", "--model", "mock/broken", *common, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    oracle, broken = Report.model_validate(json.loads(done.stdout)).scores
    assert oracle.final == {"correct": 2} and oracle.pass_at[1].value == 1.0 and oracle.cost == 0.0
    assert broken.final == {"syntax_error": 2} and broken.pass_at[1].value == 0.0
    again = llmdsl(
        "eval", "--model", f"replay/{tmp_path / 'run'}#oracle", *common, "--out", tmp_path / "again"
    )
    assert Report.model_validate(json.loads(again.stdout)).scores[0].final == {"correct": 2}, again.stderr
