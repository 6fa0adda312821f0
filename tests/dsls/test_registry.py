"""DSLs by name: built in, brought by another package, misspelt, broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llmdsl.dsls.registry import dsl_names, load_dsl
from llmdsl.errors import BrokenDsl, UnknownDsl

ADAPTER = """
from llmdsl.dsls.base import Dsl
DSL = Dsl(name="toy", title="Toy", suffix=".py", fences=("python",), packages=("toy-language",), tiers=("interpret",),
          backend="toy", install="pip install toy-language")
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package as pip leaves it, with an entry point `toy`; its module is to be written by the test."""
    info = tmp_path / "llmdsl_toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: llmdsl-toy\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[llmdsl.dsls]\ntoy = llmdsl_toy:DSL\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "llmdsl_toy", raising=False)
    return tmp_path / "llmdsl_toy.py"


@pytest.mark.parametrize("name", dsl_names())
def test_every_name_is_its_dsls_own(name: str):
    dsl = load_dsl(name)
    assert dsl.name == name
    assert dsl.tiers and dsl.packages and dsl.install


def test_unknown_name_gets_the_nearest():
    with pytest.raises(
        UnknownDsl, match=r"unknown DSL 'tritn'\. Did you mean 'triton'\? Known: .*`llmdsl doctor`"
    ):
        load_dsl("tritn")


def test_another_package_brings_a_dsl(plugin: Path):
    plugin.write_text(ADAPTER)
    assert "toy" in dsl_names()
    assert load_dsl("toy").title == "Toy"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("DSL = 'toy'", "llmdsl_toy:DSL is no Dsl named 'toy'"),
        (ADAPTER.replace('name="toy"', 'name="other"'), "llmdsl_toy:DSL is no Dsl named 'toy'"),
    ],
)
def test_broken_package_is_named_with_what_to_do(plugin: Path, module: str, reason: str):
    plugin.write_text(module)
    with pytest.raises(BrokenDsl) as error:
        load_dsl("toy")
    assert reason in str(error.value)
    assert str(error.value).endswith("pip uninstall llmdsl-toy")
    load_dsl("triton")  # the others are none the worse


def test_doctor_survives_a_broken_package(plugin: Path):
    plugin.write_text("raise OSError('libtoy.so is not here')")
    done = subprocess.run([sys.executable, "-m", "llmdsl.cli.app", "doctor", "--json"], capture_output=True, text=True,
                          timeout=60, env=os.environ | {"PYTHONPATH": str(plugin.parent)})  # fmt: skip
    found = json.loads(done.stdout)
    assert "libtoy.so is not here" in found["broken_dsls"]["toy"]
    assert any("libtoy.so is not here" in each["get"] for each in found["missing"])
    assert "triton" in found["dsls"] and "toy" not in found["dsls"]
