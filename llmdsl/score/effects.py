"""How much a DSL changes the odds of a correct first answer, task and model being equal: a logistic mixed model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from llmdsl.score.intervals import CONFIDENCE, student_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIOR_SD = 3.0  # of an effect in log odds: keeps a DSL in which nothing or everything is right finite
FEWEST_TASKS = 5
_NODES, _REACH = 121, 4.5  # grid of a task's difficulty, in its standard deviations
_STEPS = 50


class Count(NamedTuple):
    """Of `trials` first answers on one task, `passed` were right; `unit` is what pairs share, the model for instance."""

    side: str
    unit: tuple[str, ...]
    task: str
    trials: int
    passed: int


class Effect(NamedTuple):
    """Log odds of a right first answer on this side, less the mean over sides, with its 95 % interval."""

    effect: float
    low: float
    high: float


def side_effects(counts: Sequence[Count]) -> dict[str, Effect]:
    """Effects of `correct ~ side + unit + (1 | task)`; they sum to zero. Empty from fewer than two sides or five tasks.

    The likelihood integrates each task's difficulty, normal with an unknown standard deviation, on a grid. Effects of
    sides and units have a normal prior of standard deviation PRIOR_SD. Intervals: Student's t with tasks - 1 degrees
    of freedom, and the larger of the model's own standard error and the sandwich over tasks (Liang & Zeger 1986,
    "Longitudinal Data Analysis Using Generalized Linear Models"), since a task can suit one DSL more than another.
    Units that only one side has say nothing of sides and are left out.
    """
    import numpy as np

    sides_of: dict[tuple[str, ...], set[str]] = {}
    for count in counts:
        sides_of.setdefault(count.unit, set()).add(count.side)
    rows = [count for count in counts if count.trials and len(sides_of[count.unit]) > 1]
    sides, units, tasks = (list(dict.fromkeys(row[i] for row in rows)) for i in range(3))
    if len(sides) < 2 or len(tasks) < FEWEST_TASKS:
        return {}
    rows.sort(key=lambda row: tasks.index(row.task))
    side_code, unit_code = _deviations(len(sides)), _deviations(len(units))
    design = np.hstack([
        np.ones((len(rows), 1)), side_code[[sides.index(row.side) for row in rows]],
        unit_code[[units.index(row.unit) for row in rows]],
    ])  # fmt: skip
    starts = np.flatnonzero(np.diff([tasks.index(row.task) for row in rows], prepend=-1))
    trials, passed = (np.array([row[i] for row in rows], dtype=np.float64) for i in (3, 4))

    # Penalties of the intercept (none), of every level's effect, and of the logarithm of the tasks' deviation.
    size, first_unit = design.shape[1] + 1, len(sides)
    penalty = np.zeros((size, size))
    penalty[1:first_unit, 1:first_unit] = side_code.T @ side_code / PRIOR_SD**2
    penalty[first_unit:-1, first_unit:-1] = unit_code.T @ unit_code / PRIOR_SD**2
    penalty[-1, -1] = 1.0

    def score(theta: NDArray) -> tuple[float, NDArray]:
        return _score(theta, design, trials, passed, starts)

    theta, hessian = _maximum(score, penalty)
    of_tasks = score(theta)[1]
    inverse = np.linalg.inv(hessian)
    spread = of_tasks.T @ of_tasks * len(tasks) / (len(tasks) - 1)
    sandwich = inverse @ (spread + penalty) @ inverse
    t = student_quantile((1 + CONFIDENCE) / 2, len(tasks) - 1)
    effects = {}
    for side, code in zip(sides, side_code, strict=True):
        effect = float(code @ theta[1:first_unit])
        errors = [float(code @ v[1:first_unit, 1:first_unit] @ code) for v in (sandwich, inverse)]
        width = t * math.sqrt(max(errors))
        effects[side] = Effect(effect, effect - width, effect + width)
    return effects


def _deviations(levels: int) -> NDArray:
    """Coding of a factor by effects that sum to zero: (levels, levels - 1)."""
    import numpy as np

    return np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1))])


def _score(
    theta: NDArray, design: NDArray, trials: NDArray, passed: NDArray, starts: NDArray
) -> tuple[float, NDArray]:
    """Log likelihood, and its gradient by task: (tasks, parameters). The last parameter is the log of the deviation."""
    import numpy as np

    nodes = np.linspace(-_REACH, _REACH, _NODES)
    deviation = math.exp(theta[-1])
    linear = (design @ theta[:-1])[:, None] + deviation * nodes
    log_rows = passed[:, None] * linear - trials[:, None] * np.logaddexp(0, linear)
    joint = np.add.reduceat(log_rows, starts) - nodes**2 / 2  # (tasks, nodes)
    top = joint.max(axis=1, keepdims=True)
    weights = np.exp(joint - top)
    total = weights.sum(axis=1, keepdims=True)
    weights /= total
    residual = passed[:, None] - trials[:, None] / (1 + np.exp(-linear))
    sizes = np.diff(np.append(starts, len(trials)))
    weighted = residual * np.repeat(weights, sizes, axis=0)
    of_design = np.add.reduceat(design * weighted.sum(axis=1, keepdims=True), starts)
    of_deviation = np.add.reduceat(weighted @ nodes, starts) * deviation
    return float((np.log(total) + top).sum()), np.hstack([of_design, of_deviation[:, None]])


def _maximum(score: Callable[[NDArray], tuple[float, NDArray]], penalty: NDArray) -> tuple[NDArray, NDArray]:
    """The maximum of the penalised likelihood and the negative Hessian there: Newton's method, steps halved as needed."""
    import numpy as np

    def value(theta: NDArray) -> float:
        return score(theta)[0] - theta @ penalty @ theta / 2

    def slope(theta: NDArray) -> NDArray:
        return score(theta)[1].sum(axis=0) - penalty @ theta

    def curvature(theta: NDArray) -> NDArray:
        h = 1e-4
        columns = [(slope(theta - h * e) - slope(theta + h * e)) / (2 * h) for e in np.eye(len(theta))]
        return (np.array(columns) + np.array(columns).T) / 2

    theta = np.zeros(len(penalty))
    for _ in range(_STEPS):
        bend, lift = np.linalg.eigh(curvature(theta))
        hessian = (lift * np.maximum(np.abs(bend), 1e-3)) @ lift.T  # uphill also where it is not concave
        gradient = slope(theta)
        step = np.linalg.solve(hessian, gradient)
        now = value(theta)
        while value(theta + step) < now - 1e-9 and np.abs(step).max() > 1e-8:
            step = step / 2
        theta = theta + step
        if np.abs(step).max() < 1e-5:
            break
    return theta, hessian
