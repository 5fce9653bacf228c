"""The command that releases a mean."""

from __future__ import annotations

import argparse
import json
import re
from datetime import UTC, datetime
from math import sqrt
from pathlib import Path
from typing import Any

import skdpfrechet
from skdpfrechet._cli._ledger import open_ledger
from skdpfrechet._cli._output import reserve
from skdpfrechet._cli._page import make_page
from skdpfrechet._cli._read import RecordFile, read_groups, read_point, read_records
from skdpfrechet._cli._released import Released
from skdpfrechet._numerics import Array
from skdpfrechet._validation import check_open_unit, check_positive
from skdpfrechet.estimators import DPFrechetMean, DPFrechetVariance
from skdpfrechet.privacy import GDP, PrivacyLedger, PrivacyReport

PRIVATE = "private"
MEAN_SHARE = 0.64  # of mu², if there is a variance to pay for as well


def release(args: argparse.Namespace) -> None:
    """Release the mean of the records in a file, as JSON and as a page.

    Whatever may fail is tried before the fit: a spend that cannot be saved is lost.
    """
    check_positive("mu", args.mu)
    check_open_unit("confidence-level", args.confidence_level)
    output = Path(args.output)
    page = output.with_suffix(".html")
    if output.suffix != ".json":
        raise ValueError(f"--output must end in .json, got {output}.")
    _check_unit(args)
    ledger = _open_ledger(args)
    with reserve(output, args.force) as save, reserve(page, args.force) as save_page:
        held, groups, center = _read(args)
        try:
            released = _fit(args, held, groups, center, ledger)
        except (ValueError, TypeError) as error:  # the library calls the records X
            raise ValueError(re.sub(r"^X\b", lambda _: args.file, str(error))) from None
        text = json.dumps(released.to_dict(), indent=1, allow_nan=False) + "\n"
        try:
            save(text)
        except OSError:
            print(text)  # it is paid for
            raise
        save_page(make_page(released))
    print(f"released with {released.privacy.guarantee}: {output} for programs, {page} for people")


def _check_unit(args: argparse.Namespace) -> None:
    grouped = args.groups is not None or args.group_column is not None
    if args.unit is not None and not grouped:
        raise ValueError("--unit needs --groups or --group-column, whose groups it names.")
    if args.unit is None and grouped and args.ledger is not None:
        raise ValueError(
            "--unit must name what one group is, such as person, with groups and a --ledger: what "
            "two partitions spend does not add up."
        )


def _open_ledger(args: argparse.Namespace) -> PrivacyLedger | None:
    if args.ledger is None:
        if args.dataset is not None:
            raise ValueError("--dataset needs a --ledger.")
        return None
    ledger = open_ledger(args.ledger, args.dataset or "default")
    # With a variance there are two spends: either both or none can be paid.
    if args.mu > ledger.remaining.mu * (1 + 1e-12):
        raise ValueError(
            f"mu must be at most {ledger.remaining.mu!r}, which the ledger has left for data set "
            f"{ledger.dataset!r}, got {args.mu!r}."
        )
    return ledger


def _read(args: argparse.Namespace) -> tuple[RecordFile, Array | None, Array | str | None]:
    """Return what the file of records holds, the groups and the centre."""
    held = read_records(
        Path(args.file),
        args.manifold,
        args.key,
        args.group_column,
        args.header,
        replace=args.invalid == "replace",
    )
    groups = held.groups if args.groups is None else read_groups(Path(args.groups))
    if args.center is None or args.center == PRIVATE:
        return held, groups, args.center
    return held, groups, read_point(Path(args.center), args.manifold)


def _fit(
    args: argparse.Namespace,
    held: RecordFile,
    groups: Array | None,
    center: Array | str | None,
    ledger: PrivacyLedger | None,
) -> Released:
    share = MEAN_SHARE if args.variance else 1.0
    shared: dict[str, Any] = {
        "manifold": args.manifold,
        "confidence_level": args.confidence_level,
        "ledger": ledger,
        "invalid": args.invalid,
        "noise": args.noise,
        "mechanism": args.mechanism,
        "unit": args.unit,
    }
    mean = DPFrechetMean(
        **shared,
        center=center,
        radius=args.radius,
        outer_radius=args.outer_radius,
        mu=args.mu * sqrt(share),
    ).fit(held.records, groups=groups)
    reports, variance, interval = [mean.privacy_], None, None
    if args.variance:
        fit = DPFrechetVariance(
            **shared,
            center=mean.center_,
            radius=mean.radius_,
            mean=mean.release_,
            # Rounded so that both together cost no more than mu.
            mu=args.mu * sqrt(1 - share) * (1 - 1e-15),
        ).fit(held.records, groups=groups)
        reports.append(fit.privacy_)
        variance, interval = fit.variance_, fit.interval_
    return Released(
        date=datetime.now(UTC).date().isoformat(),
        version=skdpfrechet.__version__,
        n=mean.n_samples_,
        center=mean.center_,
        radius=mean.radius_,
        region=mean.confidence_region_,
        privacy=_together(args.mu, reports),
        variance=variance,
        interval=interval,
        header_lines=held.header_lines,
    )


def _together(mu: float, reports: list[PrivacyReport]) -> PrivacyReport:
    """Return the report of fits that cost `mu` together."""
    return PrivacyReport(
        guarantee=GDP(mu),
        releases=tuple(row for report in reports for row in report.releases),
        unit=reports[0].unit,
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
    )
