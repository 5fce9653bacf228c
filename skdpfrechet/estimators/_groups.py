"""Groups of records, such as persons with many trials: one point each, then as any record.

Neighbouring data sets differ in all records of one group, in their number too. So only the number
of groups is public, and no message names a number of records.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np

from skdpfrechet import sensitivity
from skdpfrechet._numerics import Array
from skdpfrechet._solvers import load, point_of_ball
from skdpfrechet.manifolds import Localization
from skdpfrechet.privacy import Group, Record

GROUP_TOLERANCE = 1e-9  # of the radius: residual at which a group's own mean is good enough
GROUP_PASSES = 200  # of the descent, for groups that the fast iteration does not solve


def check_unit(estimator, groups) -> Record | Group:
    """Return what a fit protects: a record, or the group of the partition that `unit` names."""
    unit = estimator.unit
    if unit is not None and not isinstance(unit, str):
        raise TypeError(
            "unit must be the name of the partition in groups, such as 'person', or None, "
            f"got {unit!r}."
        )
    if groups is None and unit is None:
        return Record()
    if groups is None:
        raise ValueError(
            f"unit must be None without groups, whose partition it names, got {unit!r}."
        )
    if unit is not None:
        try:
            return Group(unit)
        except ValueError:
            raise ValueError(
                "unit must name what a group is, such as 'person': printable, without spaces "
                f"around it and other than 'record', got {unit!r}."
            ) from None
    if estimator.ledger is not None:
        raise ValueError(
            "unit must name the partition in groups, such as 'person', with groups and a ledger, "
            "got None: what two partitions spend does not add up."
        )
    return Group("group")


def check_groups(groups, n_records: int) -> Array:
    """Return the group of each record as a number from 0 to the number of groups less one."""
    # A list as it is: numpy would turn its numbers into strings if one of them is one.
    labels = None
    with suppress(ValueError):  # numpy's own message counts the records
        labels = np.asarray(groups, dtype=object if isinstance(groups, list | tuple) else None)
    if labels is None:
        raise ValueError(_SHAPE)
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


def without_counts(fit: Callable[..., Any], groups, *arguments: Any) -> Any:
    """Call `fit`; with groups a failure to get memory does not say for how many records."""
    try:
        return fit(*arguments, groups)
    except MemoryError:
        if groups is None:
            raise
    # Outside the handler: a context would carry numpy's message, which has the shape.
    raise MemoryError("the records and their groups need more memory than there is.")


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
