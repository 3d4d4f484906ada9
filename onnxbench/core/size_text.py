"""Read sizes from text: what a model's dim_param says."""

from __future__ import annotations

import ast
import warnings

from onnxbench.core.symbolic import Size, floordiv, largest, modulo, smallest, symbol


def parse(text: str) -> Size | None:
    """The size that a dim_param says ("batch", "2*N", "past + seq"); None if it cannot be read as one.

    A text that is no arithmetic is a symbol whole, as exporters use names such as "unk__12" and "a.b-c". What prints as a
    size reads back as the same: names that are no identifiers stand in quotes there (`'a.b-c' + 1`).
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's own, on what is odd but no mistake of its
            return _from_tree(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _from_tree(tree: ast.expr) -> Size:
    match tree:
        case ast.Name(id=name):
            return symbol(name)
        case ast.Constant(value=str(name), kind=None):
            return symbol(name)
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _from_tree(operand) * -1
        case ast.BinOp(left=left, op=operator, right=right):
            return _operated(operator, _from_tree(left), _from_tree(right))
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=arguments, keywords=[]) if arguments:
            sizes = [_from_tree(argument) for argument in arguments]
            return smallest(*sizes) if name == "min" else largest(*sizes)
        case ast.Call(func=ast.Name(id="floor"), args=[ast.BinOp(left=left, op=ast.Div(), right=right)]):
            return floordiv(_from_tree(left), _from_tree(right))
    raise ValueError("no arithmetic of sizes")


def _operated(operator: ast.operator, left: Size, right: Size) -> Size:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv() if right != 0:
            return floordiv(left, right)
        case ast.Mod() if right != 0:
            return modulo(left, right)
        case ast.Pow() if isinstance(right, int) and 0 < right < 8:
            product: Size = 1
            for _ in range(right):
                product = product * left
            return product
    raise ValueError("no arithmetic of sizes")
