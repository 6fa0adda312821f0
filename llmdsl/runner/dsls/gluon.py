"""Gluon: Triton's run time with a front end of its own, so all but the language of a kernel is Triton's."""

from __future__ import annotations

from .triton import Triton


class Gluon(Triton):
    language = "gluon"

    def warm(self, tier: str) -> None:
        super().warm(tier)
        import triton.experimental.gluon
        import triton.experimental.gluon.language
        import triton.experimental.gluon.nvidia.blackwell
        import triton.experimental.gluon.nvidia.hopper  # noqa: F401


BACKEND = Gluon()
