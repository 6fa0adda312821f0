from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from llmdsl.errors import UnknownProvider
from llmdsl.models.base import Completion, Message, Model, ModelError, Request, Usage
from llmdsl.models.prices import cost
from llmdsl.models.registry import create_model, providers
from llmdsl.resources import reference_kernels_dir

REQUEST = Request(messages=(Message(role="user", content="write it"),), task="softmax", dsl="triton")


def answer(spec: str, request: Request = REQUEST) -> Completion:
    return asyncio.run(create_model(spec).complete(request))


def test_unknown_provider_lists_the_known_ones() -> None:
    with pytest.raises(UnknownProvider) as error:
        create_model("opanai/gpt-5")
    assert "Did you mean 'openai'?" in str(error.value)
    assert all(name in str(error.value) for name in providers())


@pytest.mark.parametrize(
    ("spec", "says"),
    [("openai/m", "export OPENAI_API_KEY"), ("anthropic/m", "export ANTHROPIC_API_KEY"), ("openai-compat/m", "--base-url"),
     ("mock/nonsense", "oracle-after-N")],
)  # fmt: skip
def test_what_is_missing_is_said(spec: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelError, match=says):
        create_model(spec)


def test_no_sdk_is_imported_that_is_not_needed() -> None:
    code = (
        "import sys; from llmdsl.models.registry import create_model; create_model('oracle'); "
        "sys.exit(any(m in sys.modules for m in ('openai', 'anthropic', 'xllamacpp', 'torch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_oracle_answers_with_the_reference_kernel() -> None:
    source = (reference_kernels_dir() / "softmax" / "triton.py").read_text()
    assert source in answer("oracle").text
    with pytest.raises(ModelError) as error:
        answer("oracle", REQUEST.model_copy(update={"dsl": "nosuch"}))
    assert error.value.kind == "no_reference"


def test_mocks_do_what_they_say() -> None:
    source = (reference_kernels_dir() / "softmax" / "triton.py").read_text()
    assert answer("mock/empty").text == ""
    assert "```" not in answer("mock/prose").text
    assert answer("mock/truncated").finish_reason == "length"
    assert "torch.softmax" in answer("mock/torch").text
    third = REQUEST.model_copy(update={"attempt": 3})
    assert (
        source in answer("mock/oracle-after-2", third).text
        and "unfinished" not in answer("mock/oracle-after-2", third).text
    )
    assert "unfinished" in answer("mock/oracle-after-2").text
    with pytest.raises(ModelError) as error:
        answer("mock/fail")
    assert error.value.kind == "server_error"


def test_every_model_keeps_the_protocol() -> None:
    for spec in ("oracle", "mock/prose"):
        model = create_model(spec)
        assert isinstance(model, Model) and model.name == spec


def test_costs() -> None:
    usage = Usage(input=1_000_000, cached_input=400_000, output=100_000, reasoning=50_000)
    # 0.6 M fresh at 5, 0.4 M cached at 0.5, 0.1 M out at 25 dollars a million
    assert cost("anthropic/claude-opus-4-5-20251101", usage) == pytest.approx(3.0 + 0.2 + 2.5)
    assert cost("openai/gpt-5-mini", Usage(input=1_000_000)) == pytest.approx(0.25)
    assert cost("openai/gpt-5-mini-2", Usage(input=1)) is None  # another model, not a snapshot
    assert cost("openai-compat/anything", usage) is None
    assert cost("oracle", usage) == 0 == cost("local/smollm2", usage)


def test_prices_name_their_sources() -> None:
    import yaml

    table = yaml.safe_load((Path(__file__).parents[2] / "llmdsl" / "models" / "prices.yaml").read_text())
    for entries in table.values():
        for entry in entries:
            assert (
                entry["source"] and entry["read"] and entry["input"] >= entry["cached"] > 0 < entry["output"]
            )
