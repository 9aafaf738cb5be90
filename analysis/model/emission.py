"""Statements of a model's source text as machine code, each operation written down once.

The compiler would give every number and every access to an array a type, and write it down, by rules for all
of Python: most of the time to compile a model. The statements that are made from equations are few in kind
(arithmetic on float64, choices, calls, elements of contiguous arrays, loops that count from zero), so an
``intrinsic`` writes them down directly; what surrounds them is compiled as ever.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

_FLOAT, _WHOLE, _TRUTH = ir.DoubleType(), ir.IntType(64), ir.IntType(1)
_OPERATIONS: dict[type[ast.AST], str] = {
    ast.Add: "fadd",
    ast.Sub: "fsub",
    ast.Mult: "fmul",
    ast.Div: "fdiv",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.And: "and_",
    ast.Or: "or_",
}
_PLACES: dict[type[ast.AST], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_COMPARISONS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
}


def machine_code(function: FunctionType, **given: Any) -> tuple[Any, Callable[..., Any]]:
    """What an ``intrinsic`` returns that does as the function: its signature and what writes it down.

    ``given``: the types of its arguments, in order, by their names.
    """
    names, statements = list(given), _definitions(function.__code__.co_filename)[function.__name__].body

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        writer = _Writer(context, builder, function.__globals__)
        for name, kind, value in zip(names, signature.args, arguments, strict=True):
            writer.take(name, kind, value)
        writer.run(statements)
        return context.get_dummy_value()

    return types.void(*given.values()), generate


@lru_cache(maxsize=4)
def _definitions(path: str) -> dict[str, ast.FunctionDef]:
    """The functions of a file, whose name changes with what it holds."""
    parsed = ast.parse(Path(path).read_text(encoding="utf-8"))
    return {one.name: one for one in parsed.body if isinstance(one, ast.FunctionDef)}


class _Writer:
    """Writes statements at the builder's place."""

    def __init__(self, context: Any, builder: Any, scope: Mapping[str, Any]) -> None:
        self.context, self.builder, self.scope = context, builder, {"abs": abs, **scope}
        self.values: dict[str, Any] = {}
        self.arrays: dict[str, Any] = {}

    def take(self, name: str, kind: Any, value: Any) -> None:
        """An argument by the name that the text has for it."""
        if isinstance(kind, types.Array):
            self.arrays[name] = self.context.make_array(kind)(self.context, self.builder, value)
        else:
            self.values[name] = value

    def run(self, statements: list[ast.stmt]) -> None:
        for one in statements:
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.values[name] = self.number(value)
                case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=ast.Slice())]):
                    self._clear(self.arrays[name])  # `name[:] = 0.0`
                case ast.Assign(targets=[ast.Subscript() as target], value=value):
                    self.builder.store(self.number(value), self._element(target))
                case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[count]), body=body):
                    with cgutils.for_range(self.builder, self._place(count)) as loop:
                        self.values[name] = loop.index
                        self.run(body)
                case ast.Pass():
                    pass
                case _:
                    raise NotImplementedError(ast.unparse(one))

    def number(self, node: ast.expr) -> Any:
        """A float64 or a truth value."""
        builder = self.builder
        match node:
            case ast.Constant(value=bool(value)):
                return ir.Constant(_TRUTH, value)
            case ast.Constant(value=float(value)):
                return ir.Constant(_FLOAT, value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(value))):
                return ir.Constant(_FLOAT, -value)
            case ast.Name(id=name):
                return self.values[name]
            case ast.Subscript():
                return builder.load(self._element(node))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return builder.fneg(self.number(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return builder.not_(self.number(operand))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self._call(operator.pow, [left, right])
            case ast.BinOp(left=left, op=op, right=right):
                write = getattr(builder, _OPERATIONS[type(op)])
                return write(self.number(left), self.number(right))
            case ast.BoolOp(op=op, values=parts):
                result = self.number(parts[0])
                for part in parts[1:]:
                    result = getattr(builder, _OPERATIONS[type(op)])(result, self.number(part))
                return result
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [self.number(left), *map(self.number, others)]
                result = self._compare(ops[0], sides[0], sides[1])
                for i, more in enumerate(ops[1:], start=1):
                    result = builder.and_(result, self._compare(more, sides[i], sides[i + 1]))
                return result
            case ast.IfExp(test=test, body=body, orelse=other):
                return builder.select(self.number(test), self.number(body), self.number(other))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(self.scope[name], args)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name), args=args):
                return self._call(getattr(self.scope[module], name), args)
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, ast.NotEq):
            return self.builder.fcmp_unordered("!=", left, right)  # true for what is not a number
        return self.builder.fcmp_ordered(_COMPARISONS[type(op)], left, right)

    def _call(self, function: Any, arguments: list[ast.expr]) -> Any:
        """A function of numbers, by the compiler's own code for it."""
        context, kinds = self.context, (types.float64,) * len(arguments)
        kind = context.typing_context.resolve_value_type(function)
        signature = kind.get_call_type(context.typing_context, kinds, {})
        write = context.get_function(kind, signature)
        context.add_linking_libs(getattr(write, "libs", ()))
        return write(self.builder, [self.number(argument) for argument in arguments])

    def _place(self, node: ast.expr) -> Any:
        """A whole number: a count, or the place of an element."""
        match node:
            case ast.Constant(value=int(value)):
                return ir.Constant(_WHOLE, value)
            case ast.Name(id=name):
                return self.values[name]
            case ast.BinOp(left=left, op=op, right=right):
                return getattr(self.builder, _PLACES[type(op)])(self._place(left), self._place(right))
            case _:
                raise NotImplementedError(ast.unparse(node))

    def _element(self, node: ast.Subscript) -> Any:
        """Where an element of a contiguous array is."""
        assert isinstance(node.value, ast.Name)
        array = self.arrays[node.value.id]
        if isinstance(node.slice, ast.Tuple):
            row, column = map(self._place, node.slice.elts)
            width = self.builder.extract_value(array.shape, 1)
            place = self.builder.add(self.builder.mul(row, width), column)
        else:
            place = self._place(node.slice)
        return self.builder.gep(array.data, [place])

    def _clear(self, array: Any) -> None:
        size = self.builder.mul(array.nitems, array.itemsize)
        cgutils.memset(self.builder, array.data, size, 0)
