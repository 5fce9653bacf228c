"""Straight-line machine code written as ordinary Python.

An unrolled kernel is a function of `Value` objects: running it once, at compile time, emits one
machine instruction per operation, and Python loops, lists and calls leave no trace. numba sees a
single operation, so hundreds of instructions compile in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from skdpfrechet._kernels._vector import (
    FASTMATH,
    broadcast,
    select_greater_lanes,
    sqrt_lanes,
    vector,
)

_FLAGS = tuple(sorted(FASTMATH))


class Value:
    """A vector that will exist when the compiled code runs."""

    def __init__(self, builder: Any, lanes: Any) -> None:
        self.builder, self.lanes = builder, lanes

    def wrap(self, x: Value | float) -> Value:
        """Return `x`, a number as a constant."""
        if isinstance(x, Value):
            return x
        return Value(self.builder, broadcast(self.builder, ir.Constant(ir.DoubleType(), float(x))))

    def _binary(self, instruction: str, left: Value | float, right: Value | float) -> Value:
        operands = [self.wrap(x).lanes for x in (left, right)]
        return Value(self.builder, getattr(self.builder, instruction)(*operands, flags=_FLAGS))

    def __add__(self, other: Value | float) -> Value:
        return self._binary("fadd", self, other)

    def __sub__(self, other: Value | float) -> Value:
        return self._binary("fsub", self, other)

    def __mul__(self, other: Value | float) -> Value:
        return self._binary("fmul", self, other)

    def __truediv__(self, other: Value | float) -> Value:
        return self._binary("fdiv", self, other)

    def __rmul__(self, other: float) -> Value:
        return self._binary("fmul", other, self)

    def __rtruediv__(self, other: float) -> Value:
        return self._binary("fdiv", other, self)

    def __neg__(self) -> Value:
        return Value(self.builder, self.builder.fneg(self.lanes, flags=_FLAGS))

    def sqrt(self) -> Value:
        """Return the square root."""
        return Value(self.builder, sqrt_lanes(self.builder, self.lanes))


def where_greater(x: Value, y: Value | float, a: Value | float, b: Value | float) -> Value:
    """Return `a` where x > y and `b` elsewhere, also where either is NaN."""
    operands = [x.wrap(operand).lanes for operand in (x, y, a, b)]
    return Value(x.builder, select_greater_lanes(x.builder, *operands))


def total(values: Sequence[Value]) -> Value:
    """Return the sum, from left to right."""
    result = values[0]
    for value in values[1:]:
        result = result + value
    return result


def straight_line(function: Callable[..., Any], result: Any, *arguments: Any) -> tuple[Any, Any]:
    """Return signature and code of an intrinsic: what its definition has to return.

    `function` gets a `Value` for a vector or a number, and a list of them for a tuple of vectors;
    it returns a `Value`, or a list when the `result` type is a tuple.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds = signature.args
        outcome = function(*(_lift(builder, kind, x) for kind, x in zip(kinds, args, strict=True)))
        if isinstance(outcome, Value):
            return outcome.lanes
        lanes = [value.lanes for value in outcome]
        return context.make_tuple(builder, signature.return_type, lanes)

    return result(*arguments), codegen


def _lift(builder: Any, kind: Any, x: Any) -> Value | list[Value]:
    if kind is vector:
        return Value(builder, x)
    if isinstance(kind, types.UniTuple):
        return [Value(builder, lanes) for lanes in cgutils.unpack_tuple(builder, x, kind.count)]
    return Value(builder, broadcast(builder, x))


def vectors(count: int) -> Any:
    """Return the numba type of a tuple of `count` vectors."""
    return types.UniTuple(vector, count)
