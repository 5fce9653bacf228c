"""Poles for eight matrices at a time, each lane with those that its own matrix needs.

How many poles a matrix takes, and which, follows from the bound on its own eigenvalues. A lane
whose neighbours need more goes through their rounds with weights of zero, which add nothing: its
logarithm is the same, bit for bit, whatever matrices share its block.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from skdpfrechet._kernels._compile import inner, short_loops
from skdpfrechet._kernels._transpose import transpose
from skdpfrechet._kernels._vector import (
    LANES,
    any_greater,
    load,
    require_float64_array,
    store,
    vector,
    vector_pointer,
)

# In the memory of `choose_nodes`: the rows in use, then vectors of Σ a_j, the weights, the shifts.
CONSTANTS, WEIGHTS = LANES, 2 * LANES


@inner
def choose_nodes(rows, last, counts, nodes, lanes):
    """Put the nodes of the row of each lane into `lanes`; return the largest number of poles.

    `rows` are at most `last`, and the one beyond all counts has no poles and the constant 0.
    `lanes` has begun as -1 and belongs to one array of `nodes`.
    """
    short_loops()
    count = counts[min(last, counts.size - 1)]
    before = load(lanes, 0)
    if any_greater(rows, before) or any_greater(before, rows):
        store(lanes, 0, rows)
        width = nodes.shape[1] // 2
        for j in range(0, count + 1, 8):
            _spread(nodes, rows, j, lanes, CONSTANTS + 8 * j)
            _spread(nodes, rows, width + j, lanes, CONSTANTS + 8 * (width + j))
    return count


@intrinsic
def _spread(typing_context, table, rows, column, target, at):
    """Copy eight columns of the table to eight vectors, lane i of each from row ``rows[i]``."""
    require_float64_array(table)
    require_float64_array(target)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        table_array, lanes, column, target_array, goal = args
        width = builder.extract_value(
            context.make_array(table)(context, builder, table_array).shape, 1
        )
        loaded = []
        for lane in range(LANES):
            number = builder.extract_element(lanes, ir.Constant(ir.IntType(32), lane))
            row = builder.fptosi(number, column.type)
            position = builder.add(builder.mul(row, width), column)
            pointer = vector_pointer(context, builder, table, table_array, position)
            value = builder.load(pointer)
            value.align = 8
            loaded.append(value)
        for value in transpose(builder, loaded):
            pointer = vector_pointer(context, builder, target, target_array, goal)
            builder.store(value, pointer).align = 8
            goal = builder.add(goal, ir.Constant(goal.type, LANES))
        return context.get_dummy_value()

    return types.void(table, vector, types.intp, target, types.intp), codegen


@inner
def lanes_beyond(lanes, last):
    """Return a bit for each lane whose row is `last`."""
    short_loops()
    bits = 0
    for lane in range(8):
        if lanes[lane] == last:
            bits += 1 << lane
    return bits
