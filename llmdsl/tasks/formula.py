"""Arithmetic formulas of `task.yaml`, evaluated without `eval`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any

from llmdsl.errors import InvalidTask

_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
           ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow}  # fmt: skip
_CALLS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b)}


def evaluate(text: str, names: Mapping[str, Any]) -> float:
    """Value of an arithmetic formula over `names`. Raises InvalidTask on anything but arithmetic."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.Name(id=name) if name in names:
                return names[name]
            case ast.Name(id=name):
                raise InvalidTask(
                    f"formula {text!r}: unknown name {name!r}. Known: {', '.join(sorted(names))}."
                )
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return value(body) if value(test) else value(orelse)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _CALLS:
                return _CALLS[name](*map(value, args))
        raise InvalidTask(
            f"formula {text!r}: only arithmetic, `a if b else c` and {', '.join(_CALLS)} are allowed."
        )

    try:
        return value(ast.parse(text, mode="eval").body)
    except SyntaxError as error:
        raise InvalidTask(f"formula {text!r} does not parse: {error.msg}.") from error
