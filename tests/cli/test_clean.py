"""Candidates write what they like into answers and errors; a terminal must not obey it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.cli.clean import clean, one_line


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain\n\ttext ünïcode 🧮", "plain\n\ttext ünïcode 🧮"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[Hgone", "␛[2J␛[Hgone"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x1b]8;;http://x\x1b\\link", "␛]8;;http://x␛\\link"),
        ("\x9b31mC1", "<U+009B>31mC1"),
        ("over\rwritten", "over␍written"),
        ("back\x08space\x7f", "back␈space␡"),
        ("a\u202eb\u2066c\u200bd", "a<U+202E>b<U+2066>c<U+200B>d"),
        ("windows\r\nline", "windows\nline"),
        ("nul\0", "nul␀"),
        ("[red]markup[/red]", "[red]markup[/red]"),
    ],
)
def test_nothing_is_obeyed_and_nothing_is_hidden(hostile: str, shown: str) -> None:
    assert clean(hostile) == shown


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert not {c for c in clean(text) if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n", "\t"}


def test_one_line() -> None:
    assert one_line("\n\n  first \x1b[2J\nsecond") == "first ␛[2J"
    assert one_line("x" * 200, 10) == "x" * 9 + "…"
    assert one_line("") == ""
