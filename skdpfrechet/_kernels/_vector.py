"""Eight float64 in one machine vector, as a type that numba kernels can compute with.

LLVM vectorises a loop only after proving that no two arrays overlap, which it rarely can; spelled
out as ``<8 x double>`` values nothing has to be proven. On CPUs with narrower registers LLVM
splits a vector into halves or quarters.

Inside a kernel ``u + v``, ``u - v``, ``u * v``, ``u / v`` and ``-v`` work lane by lane, with
numbers broadcast. The operations may be contracted (fused multiply-add) and a division may become
a multiplication by the reciprocal, but sums are never reordered: results do not depend on how
LLVM chose to vectorise.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

LANES = 8

FASTMATH = {"contract", "nsz", "arcp"}  # for ``njit``: the flags of the vector operations too
_FLAGS = tuple(sorted(FASTMATH))
_LLVM_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_LLVM_INDEX = ir.IntType(32)


def empty_vectors(*shape: int) -> Any:
    """Return an uninitialised float64 array that begins on a cache line, as numpy's do not."""
    count = math.prod(shape)
    a = np.empty(count + LANES - 1)
    start = -(a.ctypes.data // a.itemsize) % LANES
    return a[start : start + count].reshape(shape)


class VectorType(types.Type):
    """The numba type of a vector."""

    def __init__(self) -> None:
        super().__init__(name=f"vector({LANES} x float64)")


vector = VectorType()


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, frontend_type: Any) -> None:
        super().__init__(data_model_manager, frontend_type, _LLVM_VECTOR)


# --- emitted instructions ------------------------------------------------------------------------


def broadcast(builder: Any, x: Any) -> Any:
    """Emit a vector with the float64 `x` in every lane."""
    undefined = ir.Constant(_LLVM_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, x, ir.Constant(_LLVM_INDEX, 0))
    zeros = ir.Constant(ir.VectorType(_LLVM_INDEX, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def sqrt_lanes(builder: Any, v: Any) -> Any:
    """Emit the square roots."""
    kind = ir.FunctionType(_LLVM_VECTOR, [_LLVM_VECTOR])
    name = f"llvm.sqrt.v{LANES}f64"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [v])


def sum_lanes(builder: Any, v: Any) -> Any:
    """Emit the sum of the lanes, added in the fixed order 0, 1, 2, ..."""
    lanes = [builder.extract_element(v, ir.Constant(_LLVM_INDEX, i)) for i in range(LANES)]
    total = lanes[0]
    for lane in lanes[1:]:
        total = builder.fadd(total, lane)
    return total


def select_greater_lanes(builder: Any, x: Any, y: Any, a: Any, b: Any) -> Any:
    """Emit `a` where x > y and `b` elsewhere, also where either is NaN."""
    return builder.select(builder.fcmp_ordered(">", x, y), a, b)


# --- memory ------------------------------------------------------------------------------------


@intrinsic
def load(typing_context, a, i):
    """Return the vector at flat offset `i` (in elements, any alignment) of a C array `a`."""
    require_float64_array(a)

    def codegen(context, builder, signature, args):
        pointer = vector_pointer(context, builder, signature.args[0], args[0], args[1])
        value = builder.load(pointer)
        value.align = 8
        return value

    return vector(a, types.intp), codegen


@intrinsic
def store(typing_context, a, i, v):
    """Write `v` to flat offset `i` (in elements, any alignment) of a C array `a`."""
    require_float64_array(a)

    def codegen(context, builder, signature, args):
        pointer = vector_pointer(context, builder, signature.args[0], args[0], args[1])
        builder.store(args[2], pointer).align = 8
        return context.get_dummy_value()

    return types.void(a, types.intp, vector), codegen


def require_float64_array(a: Any) -> None:
    """Raise unless the numba type `a` is an array that vectors can live in."""
    if not (isinstance(a, types.Array) and a.dtype == types.float64 and a.layout == "C"):
        raise TypingError(f"vectors live in C-contiguous float64 arrays, got {a}.")


def vector_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    """Emit the address of the vector at flat offset `offset`."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), _LLVM_VECTOR.as_pointer())


# --- lanes -------------------------------------------------------------------------------------


@intrinsic
def splat(typing_context, x):
    """Return the vector with `x` in every lane."""

    def codegen(context, builder, signature, args):
        return broadcast(builder, args[0])

    return vector(types.float64), codegen


@intrinsic
def horizontal_sum(typing_context, v):
    """Return the sum of the lanes, added in the fixed order 0, 1, 2, ..."""

    def codegen(context, builder, signature, args):
        return sum_lanes(builder, args[0])

    return types.float64(vector), codegen


@intrinsic
def entry(typing_context, v, i):
    """Return lane `i`, from 0 to 7."""

    def codegen(context, builder, signature, args):
        return builder.extract_element(*args)

    return types.float64(vector, types.intp), codegen


# --- functions ---------------------------------------------------------------------------------


@intrinsic
def vsqrt(typing_context, v):
    """Return the square roots (NaN for negative lanes)."""

    def codegen(context, builder, signature, args):
        return sqrt_lanes(builder, args[0])

    return vector(vector), codegen


@intrinsic
def select_greater(typing_context, x, y, a, b):
    """Return `a` in the lanes with x > y and `b` in the others, those with a NaN included."""

    def codegen(context, builder, signature, args):
        x, y, a, b = args
        return select_greater_lanes(builder, x, y, a, b)

    return vector(vector, vector, vector, vector), codegen


@intrinsic
def any_greater(typing_context, x, y):
    """Return whether x > y in some lane."""

    def codegen(context, builder, signature, args):
        lanes = ir.IntType(LANES)
        mask = builder.bitcast(builder.fcmp_ordered(">", args[0], args[1]), lanes)
        return builder.icmp_unsigned("!=", mask, ir.Constant(lanes, 0))

    return types.boolean(vector, vector), codegen


@intrinsic
def vmax(typing_context, u, v):
    """Return the larger of `u` and `v`; a lane with a NaN in either becomes that of `v`."""

    def codegen(context, builder, signature, args):
        u, v = args
        return select_greater_lanes(builder, u, v, u, v)

    return vector(vector, vector), codegen


@intrinsic
def vmin(typing_context, u, v):
    """Return the smaller of `u` and `v`; a lane with a NaN in either becomes that of `v`."""

    def codegen(context, builder, signature, args):
        u, v = args
        return select_greater_lanes(builder, v, u, u, v)

    return vector(vector, vector), codegen


# --- operators ---------------------------------------------------------------------------------


def _define_operator(function: Any, instruction: str) -> None:
    """Teach numba `function` on two vectors, or on a vector and a number."""

    @infer_global(function)
    class _Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            known = all(a is vector or isinstance(a, (types.Float, types.Integer)) for a in args)
            if len(args) != 2 or vector not in args or not known:
                return None
            return signature(vector, *(a if a is vector else types.float64 for a in args))

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        operands = [
            a if kind is vector else broadcast(builder, a)
            for a, kind in zip(args, sig.args, strict=True)
        ]
        return getattr(builder, instruction)(*operands, flags=_FLAGS)

    for kinds in ((vector, vector), (vector, types.float64), (types.float64, vector)):
        lower_builtin(function, *kinds)(lower)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.iadd, "fadd"),
    (operator.sub, "fsub"),
    (operator.isub, "fsub"),
    (operator.mul, "fmul"),
    (operator.imul, "fmul"),
    (operator.truediv, "fdiv"),
    (operator.itruediv, "fdiv"),
):
    _define_operator(_function, _instruction)


@infer_global(operator.neg)
class _Negation(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(vector, vector) if tuple(args) == (vector,) else None


@lower_builtin(operator.neg, vector)
def _negate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0], flags=_FLAGS)
