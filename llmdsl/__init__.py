"""llmdsl: in which GPU kernel language do language models write correct, fast kernels?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmdsl.judge.api import judge as judge
    from llmdsl.judge.verdict import Outcome as Outcome
    from llmdsl.judge.verdict import Verdict as Verdict

__version__ = "0.1.0"
__all__ = ["Outcome", "Verdict", "__version__", "judge"]


def __getattr__(name: str) -> Any:
    # Resolved on first use: a bare `import llmdsl` must stay cheap, and the runner imports this package
    # in environments that have none of its dependencies.
    if name == "judge":
        from llmdsl.judge.api import judge

        return judge
    if name in ("Outcome", "Verdict"):
        from llmdsl.judge import verdict

        return getattr(verdict, name)
    raise AttributeError(f"module 'llmdsl' has no attribute {name!r}")
