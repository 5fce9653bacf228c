"""Kernel for SPD(p), p > 8: loops over packed triangles whose entries are vectors of 8 matrices.

Per block: whiten, reduce to tridiagonal form by Householder reflections, add up the resolvents of
the tridiagonal matrix in O(p²) each, transform back. A symmetric matrix is a flat array of its
lower triangle, row by row; entry (r, c) is the vector at ``8 * (r (r + 1) / 2 + c)``.
"""

from __future__ import annotations

import numpy as np

from skdpfrechet._kernels._compile import inner, kernel
from skdpfrechet._kernels._lane_nodes import (
    CONSTANTS,
    WEIGHTS,
    choose_nodes,
    lanes_beyond,
)
from skdpfrechet._kernels._vector import (
    horizontal_sum,
    load,
    select_greater,
    splat,
    store,
    vsqrt,
)

_NEGLIGIBLE = 1e-290  # squared norm of a column that needs no reflection


@kernel
def large_pass(
    packed,  # (R, blocks, q, 8), see ``Packed``
    tail,  # (8,) 1 for the lanes of the last block that hold records, else 0
    whiteners,  # (R, q) lower triangles
    limits,  # (k,) and the next two: see ``LogNodes.tables``
    counts,
    nodes,
    first,  # segments first, ..., last - 1 are done by this call
    last,
    segment_blocks,  # blocks per segment
    sums,  # out (segments, q + 2): Σ log Y, Σ ‖log Y‖², Σ (p ‖log Y‖² - (tr log Y)²)
    distances,  # out (8 R blocks,) ‖log Y‖², unless empty
    logs,  # out (q, at least 8 blocks) log Y, unless empty; for R = 1 and one segment
    flags,  # out (R, blocks) a bit for each lane that was left out
):
    """Reduce the logarithms of some segments; a matrix that is left out counts as 0."""
    blocks, entries = packed.shape[1], packed.shape[2]
    p = int((np.sqrt(8.0 * entries + 1.0) - 1.0) / 2.0 + 0.5)
    per_sample = (blocks + segment_blocks - 1) // segment_blocks
    records = packed.reshape(-1)
    w = np.zeros((p, p))
    square, vectors = np.empty(p * p * 8), np.empty(p * p * 8)
    matrix, log, total = np.empty(entries * 8), np.empty(entries * 8), np.empty(entries * 8)
    diagonal, below, taus = np.empty(p * 8), np.zeros(p * 8), np.empty(p * 8)
    poles = counts[-1]
    lanes, between = np.full((1 + nodes.shape[1]) * 8, -1.0), 4 * nodes.shape[1]
    search = np.empty(40)
    left, right = np.empty(p * poles * 8), np.empty(p * poles * 8)
    work = np.empty((4, p * 8))
    zero = splat(0.0)
    for segment in range(first, last):
        sample = segment // per_sample
        low = (segment - sample * per_sample) * segment_blocks
        high = min(low + segment_blocks, blocks)
        i = 0
        for r in range(p):
            for c in range(r + 1):
                w[r, c] = whiteners[sample, i]
                i += 1
        total[:] = 0.0
        squares, spread = zero, zero
        for k in range(low, high):
            _whiten(records, (sample * blocks + k) * entries * 8, w, p, square, vectors, matrix)
            _tridiagonalize(matrix, p, vectors, taus, diagonal, below, work)
            rows, reached = _enclose(diagonal, below, p, limits, search)
            count = choose_nodes(rows, reached, counts, nodes, lanes)
            _tridiagonal_log(diagonal, below, p, count, lanes, between, left, right, log)
            _transform_back(log, vectors, taus, p, work)
            if reached == limits.size:  # for some lane, whose logarithm is left to others
                flags[sample, k] = lanes_beyond(lanes, reached)
                for i in range(0, entries * 8, 8):
                    kept = select_greater(splat(float(reached)), rows, load(log, i), zero)
                    store(log, i, kept)
            mask = load(tail, 0) if k == blocks - 1 else splat(1.0)
            norm, trace = zero, zero
            i = 0
            for r in range(p):
                for _ in range(r):
                    x = load(log, i) * mask
                    norm = norm + 2.0 * (x * x)
                    store(total, i, load(total, i) + x)
                    i += 8
                x = load(log, i) * mask
                norm = norm + x * x
                trace = trace + x
                store(total, i, load(total, i) + x)
                i += 8
            squares = squares + norm
            spread = spread + (p * norm - trace * trace)
            if distances.size > 0:
                store(distances, (sample * blocks + k) * 8, norm)
            if logs.size > 0:
                for i in range(entries):
                    store(logs, i * logs.shape[1] + k * 8, load(log, i * 8))
        for i in range(entries):
            sums[segment, i] = horizontal_sum(load(total, i * 8))
        sums[segment, entries] = horizontal_sum(squares)
        sums[segment, entries + 1] = horizontal_sum(spread)


@inner
def _row(r):
    """Return the offset of row r in a packed triangle."""
    return r * (r + 1) * 4


@inner
def _store_pair(a, r, c, x, y):
    """Store entries (r, c) and (r, c + 1) as far as they are in the lower triangle."""
    i = _row(r) + c * 8
    if r >= c:
        store(a, i, x)
    if r > c:
        store(a, i + 8, y)


@inner
def _whiten(x, offset, w, p, full, product, y):
    """``y = w x wᵀ``; tiles of 2 x 4 entries, the last ones overlapping those before."""
    for r in range(p):
        for c in range(r + 1):
            entry = load(x, offset + _row(r) + c * 8)
            store(full, (r * p + c) * 8, entry)
            store(full, (c * p + r) * 8, entry)
    zero = splat(0.0)
    for tile_row in range(0, p, 2):
        r = min(tile_row, p - 2)
        for tile_column in range(0, p, 4):
            c = min(tile_column, p - 4)
            a0, a1, a2, a3 = zero, zero, zero, zero
            b0, b1, b2, b3 = zero, zero, zero, zero
            for t in range(r + 2):
                wa, wb, i = splat(w[r, t]), splat(w[r + 1, t]), (t * p + c) * 8
                x0, x1 = load(full, i), load(full, i + 8)
                x2, x3 = load(full, i + 16), load(full, i + 24)
                a0, a1, a2, a3 = a0 + wa * x0, a1 + wa * x1, a2 + wa * x2, a3 + wa * x3
                b0, b1, b2, b3 = b0 + wb * x0, b1 + wb * x1, b2 + wb * x2, b3 + wb * x3
            # Stored transposed: the next step reads consecutive rows of w x.
            i = (c * p + r) * 8
            store(product, i, a0)
            store(product, i + 8, b0)
            store(product, i + p * 8, a1)
            store(product, i + p * 8 + 8, b1)
            store(product, i + p * 16, a2)
            store(product, i + p * 16 + 8, b2)
            store(product, i + p * 24, a3)
            store(product, i + p * 24 + 8, b3)
    for tile_column in range(0, p, 2):
        c = min(tile_column, p - 2)
        for tile_row in range(c, p, 4):
            r = min(tile_row, p - 4)
            a0, a1, a2, a3 = zero, zero, zero, zero
            b0, b1, b2, b3 = zero, zero, zero, zero
            for t in range(c + 2):
                wa, wb, i = splat(w[c, t]), splat(w[c + 1, t]), (t * p + r) * 8
                x0, x1 = load(product, i), load(product, i + 8)
                x2, x3 = load(product, i + 16), load(product, i + 24)
                a0, a1, a2, a3 = a0 + wa * x0, a1 + wa * x1, a2 + wa * x2, a3 + wa * x3
                b0, b1, b2, b3 = b0 + wb * x0, b1 + wb * x1, b2 + wb * x2, b3 + wb * x3
            _store_pair(y, r, c, a0, b0)
            _store_pair(y, r + 1, c, a1, b1)
            _store_pair(y, r + 2, c, a2, b2)
            _store_pair(y, r + 3, c, a3, b3)


@inner
def _tridiagonalize(a, p, vectors, taus, diagonal, below, work):
    """Reduce `a` (destroyed) to tridiagonal form by reflections I - tau v vᵀ, v = row k of vectors.

    The update a - v wᵀ - w vᵀ of one reflection waits until the next one needs its product a u,
    and is done in the same sweep over `a`.
    """
    v, w, u, y = work[0], work[1], work[2], work[3]
    zero, one = splat(0.0), splat(1.0)
    v[:] = 0.0
    w[:] = 0.0
    for k in range(p):
        vk, wk = load(v, k * 8), load(w, k * 8)
        for r in range(k, p):
            i = _row(r) + k * 8
            store(u, r * 8, load(a, i) - load(v, r * 8) * wk - load(w, r * 8) * vk)
        store(diagonal, k * 8, load(u, k * 8))
        if k >= p - 2:
            if k == p - 2:
                store(below, k * 8, load(u, (p - 1) * 8))
            continue
        # The reflection maps the column below the diagonal, now in u, to (±norm, 0, ..., 0).
        square = zero
        for r in range(k + 1, p):
            x = load(u, r * 8)
            square = square + x * x
        head, norm = load(u, (k + 1) * 8), vsqrt(square)
        target = select_greater(head, zero, -norm, norm)
        needed = select_greater(square, splat(_NEGLIGIBLE), one, zero)
        half = select_greater(needed, zero, square - target * head, one)  # ‖v‖² / 2
        tau = needed / half
        store(below, k * 8, target)
        store(u, (k + 1) * 8, head - target)
        store(taus, k * 8, tau)
        for r in range(k + 1, p):
            store(vectors, (k * p + r) * 8, load(u, r * 8))
        _update_and_multiply(a, k + 1, p, v, w, u, y)
        _second_vector(k + 1, k + 1, p, tau, u, y)
        v, u = u, v
        w, y = y, w


@inner
def _second_vector(start, support, p, tau, u, y):
    """Turn y = a u into w = tau y - (tau² uᵀy / 2) u, so that H a H = a - u wᵀ - w uᵀ."""
    inner = splat(0.0)
    for r in range(support, p):
        inner = inner + load(u, r * 8) * load(y, r * 8)
    factor = tau * tau * inner * 0.5
    for r in range(start, support):
        store(y, r * 8, tau * load(y, r * 8))
    for r in range(support, p):
        store(y, r * 8, tau * load(y, r * 8) - factor * load(u, r * 8))


@inner
def _update_and_multiply(a, start, p, v, w, u, y):
    """``a -= v wᵀ + w vᵀ``, then ``y = a u``, on rows and columns `start` to p - 1.

    Rows go in pairs, which halves the traffic of the column vectors.
    """
    zero = splat(0.0)
    for r in range(start, p):
        store(y, r * 8, zero)
    first = start + (p - start) % 2
    if first > start:
        i = _row(start) + start * 8
        x = load(a, i) - 2.0 * (load(v, start * 8) * load(w, start * 8))
        store(a, i, x)
        store(y, start * 8, x * load(u, start * 8))
    for r in range(first, p, 2):
        va, wa, ua = load(v, r * 8), load(w, r * 8), load(u, r * 8)
        vb, wb, ub = load(v, r * 8 + 8), load(w, r * 8 + 8), load(u, r * 8 + 8)
        ya, yb = zero, zero
        row_a, row_b = _row(r), _row(r + 1)
        for c in range(start * 8, r * 8, 8):
            vc, wc, uc = load(v, c), load(w, c), load(u, c)
            xa = load(a, row_a + c) - va * wc - wa * vc
            xb = load(a, row_b + c) - vb * wc - wb * vc
            store(a, row_a + c, xa)
            store(a, row_b + c, xb)
            ya, yb = ya + xa * uc, yb + xb * uc
            store(y, c, load(y, c) + xa * ua + xb * ub)
        i, j = row_a + r * 8, row_b + r * 8
        xaa = load(a, i) - 2.0 * (va * wa)
        xba = load(a, j) - va * wb - wa * vb
        xbb = load(a, j + 8) - 2.0 * (vb * wb)
        store(a, i, xaa)
        store(a, j, xba)
        store(a, j + 8, xbb)
        store(y, r * 8, ya + xaa * ua + xba * ub)
        store(y, r * 8 + 8, yb + xba * ua + xbb * ub)


@inner
def _update_and_multiply_left(a, start, p, v, w, u, y):
    """The same on rows `start` to p - 1 and columns before `start`, where v and u vanish."""
    for c in range(start):
        store(y, c * 8, splat(0.0))
    first = start + (p - start) % 2
    for r in range(start, first):
        vr, ur, row = load(v, r * 8), load(u, r * 8), _row(r)
        for c in range(0, start * 8, 8):
            x = load(a, row + c) - vr * load(w, c)
            store(a, row + c, x)
            store(y, c, x * ur)
    for r in range(first, p, 2):
        va, ua, row_a = load(v, r * 8), load(u, r * 8), _row(r)
        vb, ub, row_b = load(v, r * 8 + 8), load(u, r * 8 + 8), _row(r + 1)
        for c in range(0, start * 8, 8):
            wc = load(w, c)
            xa = load(a, row_a + c) - va * wc
            xb = load(a, row_b + c) - vb * wc
            store(a, row_a + c, xa)
            store(a, row_b + c, xb)
            store(y, c, load(y, c) + xa * ua + xb * ub)


@inner
def _enclose(diagonal, below, p, limits, search):
    """Return, lane by lane, the first row of `limits` whose [1 / limit, limit] holds the spectrum.

    It is `limits.size` if there is none, as for a matrix with NaN. The largest of the rows comes
    second. Bisection, of each lane by itself; a shifted tridiagonal matrix is positive definite
    when its leading minors are positive. `search` is memory for five vectors.
    """
    zero = splat(0.0)
    for lane in range(8):
        search[lane], search[8 + lane] = 0.0, limits.size
    while True:
        wide, largest = False, 0
        for lane in range(8):
            low, high = int(search[lane]), int(search[8 + lane])
            wide, largest = wide or low < high, max(largest, low)
            middle = min((low + high) // 2, limits.size - 1)
            search[16 + lane], search[24 + lane] = middle, limits[middle]
        if not wide:
            return load(search, 0), largest
        limit = load(search, 24)
        inverse = 1.0 / limit
        before_a, before_b = splat(1.0), splat(1.0)
        a, b = load(diagonal, 0) - inverse, limit - load(diagonal, 0)
        inside = select_greater(a, zero, select_greater(b, zero, a, zero), zero)
        for k in range(1, p):
            x, d = load(below, k * 8 - 8), load(diagonal, k * 8)
            square = x * x
            before_a, a = a, (d - inverse) * a - square * before_a
            before_b, b = b, (limit - d) * b - square * before_b
            inside = select_greater(a, zero, select_greater(b, zero, inside, zero), zero)
        store(search, 32, inside)
        for lane in range(8):
            if search[lane] < search[8 + lane]:
                if search[32 + lane] > 0.0:
                    search[8 + lane] = search[16 + lane]
                else:
                    search[lane] = search[16 + lane] + 1.0


@inner
def _tridiagonal_log(diagonal, below, p, count, lanes, between, left, right, log):
    """``log = constant I + Σ weight (T + shift)⁻¹``, with the nodes of each lane.

    For c ≤ r, entry (r, c) of an inverse is the minor of T + shift before row c times that after
    row r over the determinant, times minus the entries of `below` from c to r - 1, which no shift
    changes. So the sum over poles is a matrix product: rows of `right` by rows of `left`.
    """
    for j in range(count):
        shift, one = load(lanes, between + WEIGHTS + 8 * j), splat(1.0)
        a, before = one, splat(0.0)
        for k in range(p - 1, -1, -1):
            store(right, (k * count + j) * 8, a)
            x = load(below, k * 8)  # any number will do for k = p - 1
            a, before = (load(diagonal, k * 8) + shift) * a - x * x * before, a
        # a is the determinant now; scaling one factor is enough.
        a, before = load(lanes, WEIGHTS + 8 * j) / a, splat(0.0)
        for k in range(p):
            store(left, (k * count + j) * 8, a)
            x = load(below, max(k - 1, 0) * 8)
            a, before = (load(diagonal, k * 8) + shift) * a - x * x * before, a
    zero = splat(0.0)
    for tile_row in range(0, p, 4):
        r = min(tile_row, p - 4)
        for tile_column in range(0, r + 4, 2):
            c = min(tile_column, p - 2)
            a0, a1, a2, a3 = zero, zero, zero, zero
            b0, b1, b2, b3 = zero, zero, zero, zero
            for j in range(0, count * 8, 8):
                i = r * count * 8 + j
                x0, x1 = load(right, i), load(right, i + count * 8)
                x2, x3 = load(right, i + 2 * count * 8), load(right, i + 3 * count * 8)
                ya, yb = load(left, c * count * 8 + j), load(left, (c + 1) * count * 8 + j)
                a0, a1, a2, a3 = a0 + x0 * ya, a1 + x1 * ya, a2 + x2 * ya, a3 + x3 * ya
                b0, b1, b2, b3 = b0 + x0 * yb, b1 + x1 * yb, b2 + x2 * yb, b3 + x3 * yb
            _store_pair(log, r, c, a0, b0)
            _store_pair(log, r + 1, c, a1, b1)
            _store_pair(log, r + 2, c, a2, b2)
            _store_pair(log, r + 3, c, a3, b3)
    for r in range(p):
        step = splat(1.0)
        for c in range(r - 1, -1, -1):
            step = -(step * load(below, c * 8))
            i = _row(r) + c * 8
            store(log, i, load(log, i) * step)
        i = _row(r) + r * 8
        store(log, i, load(log, i) + load(lanes, CONSTANTS))


@inner
def _transform_back(a, vectors, taus, p, work):
    """Undo the reflections on both sides of `a`, the last one first."""
    v, w, u, y = work[0], work[1], work[2], work[3]
    zero = splat(0.0)
    v[:] = 0.0
    w[:] = 0.0
    u[:] = 0.0
    for k in range(p - 3, -2, -1):
        start = k + 1
        for r in range(start, p):
            store(u, r * 8, load(vectors, (k * p + r) * 8) if k >= 0 else zero)
        _update_and_multiply(a, start, p, v, w, u, y)
        _update_and_multiply_left(a, start, p, v, w, u, y)
        if k >= 0:
            _second_vector(0, start, p, load(taus, k * 8), u, y)
        v, u = u, v
        w, y = y, w
