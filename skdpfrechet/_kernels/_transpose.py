"""Eight rows become eight vectors: what lies one after another in memory is spread over lanes."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skdpfrechet._kernels._vector import LANES, require_float64_array, vector_pointer


def transpose(builder: Any, rows: list[Any]) -> list[Any]:
    """Emit the transpose of eight vectors: three rounds that swap ever larger squares."""
    for width in (1, 2, 4):
        low = [i + (LANES - width if i & width else 0) for i in range(LANES)]
        high = [i + (LANES if i & width else width) for i in range(LANES)]
        masks = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), m) for m in (low, high)]
        rows = list(rows)
        for i in range(LANES):
            if not i & width:
                pair = rows[i], rows[i + width]
                rows[i], rows[i + width] = (builder.shuffle_vector(*pair, m) for m in masks)
    return rows


@intrinsic
def transpose_eight(typing_context, source, offset, stride, target, at):
    """Copy an 8 x 8 tile whose rows are `stride` apart to eight vectors, transposed."""
    require_float64_array(source)
    require_float64_array(target)

    def codegen(context, builder, signature, args):
        source_array, position, step, target_array, goal = args
        rows = []
        for _ in range(LANES):
            row = builder.load(vector_pointer(context, builder, source, source_array, position))
            row.align = 8
            rows.append(row)
            position = builder.add(position, step)
        for row in transpose(builder, rows):
            pointer = vector_pointer(context, builder, target, target_array, goal)
            builder.store(row, pointer).align = 8
            goal = builder.add(goal, ir.Constant(goal.type, LANES))
        return context.get_dummy_value()

    return types.void(source, types.intp, types.intp, target, types.intp), codegen
