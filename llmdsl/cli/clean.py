"""Text of models and candidates, made harmless for a terminal: they write what they like into answers and errors."""

from __future__ import annotations

import re
import unicodedata

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


def clean(text: str) -> str:
    """`text` without anything a terminal obeys.

    Colours are dropped. Every other control character, and every character that reorders or hides text, becomes
    visible, so that nothing a candidate holds can be kept from its reader. Newlines and tabs stay. Rich markup is not
    touched: print the result as `rich.text.Text`, or escape it.
    """
    text = _COLOUR.sub("", text.replace("\r\n", "\n"))
    return "".join(_visible(character) for character in text)


def one_line(text: str, width: int = 100) -> str:
    """The first line that says something, clean and cut to `width`."""
    first = next((line.strip() for line in clean(text).splitlines() if line.strip()), "")
    return first if len(first) <= width else first[: width - 1] + "…"


def _visible(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or 0x20 <= code < 0x7F:
        return character
    if code < 0x20:
        return chr(0x2400 + code)  # ␀ … ␟
    if code == 0x7F:
        return "␡"
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return f"<U+{code:04X}>"
    return character
