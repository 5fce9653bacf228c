"""Groups of records, such as persons with many trials: one point each, then as any record.

Neighbouring data sets differ in all records of one group, in their number too. So only the number
of groups is public, and no message names a number of records.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import load, point_of_ball
from skdpfrechet.manifolds import Localization

GROUP_TOLERANCE = 1e-9  # of the radius: residual at which a group's own mean is good enough
GROUP_PASSES = 200  # of the descent, for groups that the fast iteration does not solve


def check_groups(groups, n_records: int) -> Array:
    """Return the group of each record as a number from 0 to the number of groups less one."""
    try:
        # A list as it is: numpy would turn its numbers into strings if one of them is one.
        kind = object if isinstance(groups, list | tuple) else None
        labels = np.asarray(groups, dtype=kind)
    except ValueError:
        raise ValueError(_SHAPE) from None
    masked = bool(np.any(np.ma.getmaskarray(groups))) if np.ma.isMaskedArray(groups) else False
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1 or len(labels) != n_records:
        raise ValueError(_SHAPE)
    if masked or _any_missing(labels):
        raise ValueError("groups must name a group for every record, got a missing label.")
    if labels.dtype.kind != "O":
        return np.unique(labels, return_inverse=True)[1]
    numbers: dict[object, int] = {}  # equal labels are one group: 1, 1.0 and True, too
    try:
        return np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    except TypeError:
        raise TypeError("groups must hold labels that can be compared, such as strings.") from None


_SHAPE = "groups must be one-dimensional, with one label per record."


def _any_missing(labels: Array) -> bool:
    if labels.dtype.kind in "mM":
        return bool(np.isnat(labels).any())
    if labels.dtype.kind in "fc":
        return bool(np.isnan(labels).any())
    return labels.dtype.kind == "O" and any(_is_missing(label) for label in labels)


def _is_missing(label: object) -> bool:
    """Whether a label is None or not equal to itself, as NaN, NaT and pandas' NA are not."""
    if label is None:
        return True
    same = label == label
    return not (isinstance(same, bool | np.bool_) and bool(same))


def group_means(local: Localization, points: Array, codes: Array, radius: float) -> Array:
    """Return the Fréchet mean of each group's records, shape (n_groups, *point_shape).

    Every group is solved alone, so none influences the point of another, and what comes out is
    moved into the ball: there the privacy of the group rests on nothing that the solver did.

    Parameters
    ----------
    local : Localization
    points : ndarray, shape (n, *point_shape)
        Records of the model, in the ball.
    codes : ndarray, shape (n,)
        From `check_groups`.
    radius : float
    """
    model, origin = local.model, local.origin
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(codes.max() + 2))
    means = np.empty((len(starts) - 1, *model.point_shape))
    tolerance = GROUP_TOLERANCE * radius
    cap = sensitivity.float_log_cap(model, radius, len(means))
    with np.errstate(all="ignore"):
        for g, (first, last) in enumerate(pairwise(starts)):
            members = points[order[first:last]]
            if len(members) == 1:
                means[g] = members[0]
            else:
                sample, start = load(model, members), origin
                if radius > model.diameter / 2:  # the centre then says nothing about the mean
                    start = _extrinsic_mean(members)
                means[g] = point_of_ball(
                    sample,
                    start,
                    radius=radius,
                    log_cap=cap,
                    tolerance=tolerance,
                    accept=1e3 * tolerance,
                    passes=GROUP_PASSES,
                )
        return model.project_to_ball(means, origin, radius, cap)


def _extrinsic_mean(vectors: Array) -> Array:
    """Return the direction of the mean of unit vectors, the first of them where it vanishes."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 1e-9 else vectors[0])
