"""Arguments, their help, and errors of one line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from skdpfrechet import __version__
from skdpfrechet._cli import _ledger
from skdpfrechet._cli._read import HEADERS
from skdpfrechet._cli._release import release
from skdpfrechet.estimators._mechanisms import MECHANISMS
from skdpfrechet.estimators._noise import NOISES

SPACES = ("spd", "logeuclid", "logchol", "sphere", "euclidean", "hyperbolic")
ERRORS = (ValueError, TypeError, OSError, RuntimeError, MemoryError)

DESCRIPTION = (
    "Release the mean of curved data (covariance matrices, diffusion tensors, directions) under "
    "differential privacy, with an honest confidence region."
)
RELEASE = """\
Read records from a file and write their private mean twice: as release.json for programs and as
release.html for people. What is written may be published; nothing else leaves the records."""
EXAMPLE = """\
example:
  skdpfrechet release covariances.npz --manifold spd --radius 3 --mu 1 --output release.json

Decide on the center, the radius and mu before you look at the records, from what is known
about such data in general. Every release costs privacy: two with mu = 1 cost 1.41 together."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {' '.join(message.split())}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str or None
        The arguments; None takes those of the process.

    Returns
    -------
    int
        0. After an error the process exits with status 2 and one line on standard error.
    """
    args = _make_parser().parse_args(argv)
    try:
        args.run(args)
    except ERRORS as error:
        args.parser.error(_message(error))
    return 0


def _message(error: BaseException) -> str:
    """Return what an error says; those of the operating system come with a number in front."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _make_parser() -> _Parser:
    parser = _Parser(prog="skdpfrechet", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"skdpfrechet {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_release(commands)
    _add_ledger(commands)
    return parser


def _add_release(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = commands.add_parser(
        "release",
        help="release the private mean of the records in a file",
        description=RELEASE,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=release, parser=parser)
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the records: .csv with one record in each row, .npy or .npz; a matrix may be given "
        "as its rows, one after the other",
    )
    needed = parser.add_argument_group("needed")
    needed.add_argument(
        "--manifold",
        required=True,
        choices=SPACES,
        help="what a record is: spd (a covariance matrix or diffusion tensor, the affine-invariant "
        "mean), logeuclid or logchol (the same records, other means), sphere (a direction, as a "
        "vector of length 1), euclidean (plain numbers), hyperbolic",
    )
    needed.add_argument(
        "--radius",
        required=True,
        type=_number_or_private,
        metavar="R|private",
        help="how far from the center records are expected; those farther away are moved to this "
        "distance. 'private' spends part of mu to find it",
    )
    needed.add_argument(
        "--mu",
        required=True,
        type=_number,
        metavar="MU",
        help="how much privacy the release may cost: 1 is a usual value, smaller is more private",
    )
    needed.add_argument(
        "--output",
        required=True,
        metavar="FILE.json",
        help="where to write the release; a page of the same name that ends in .html is put beside",
    )
    _add_ball(parser.add_argument_group("where the records are expected"))
    _add_records(parser.add_argument_group("how to read the file"))
    _add_more(parser.add_argument_group("what to release"))
    account = parser.add_argument_group("keeping account")
    account.add_argument(
        "--ledger",
        metavar="FILE",
        help="record the cost in this ledger, and stop if its budget has not that much left; "
        "'skdpfrechet ledger create' makes one",
    )
    account.add_argument(
        "--dataset",
        metavar="NAME",
        help="the name of these records in the ledger (default: default); files that share a "
        "person must share a name",
    )


def _add_ledger(commands: argparse._SubParsersAction[_Parser]) -> None:
    text = "keep account of what all releases cost, in a file"
    ledger = commands.add_parser("ledger", help=text, description=text, allow_abbrev=False)
    actions = ledger.add_subparsers(title="commands", metavar="COMMAND", required=True)
    text = "make a ledger with a budget for each data set"
    create = actions.add_parser("create", help=text, description=text, allow_abbrev=False)
    create.set_defaults(run=_ledger.create, parser=create)
    create.add_argument("file", metavar="FILE", help="the new file, on a local disk")
    create.add_argument(
        "--mu",
        required=True,
        type=_number,
        metavar="MU",
        help="what all releases of a data set may cost together; it cannot be changed later",
    )
    _add_unit(create)
    text = "open a ledger of version 0.1 for good; what was spent keeps counting"
    upgrade = actions.add_parser("upgrade", help=text, description=text, allow_abbrev=False)
    upgrade.set_defaults(run=_ledger.upgrade, parser=upgrade)
    upgrade.add_argument("file", metavar="FILE", help="the ledger")
    upgrade.add_argument(
        "--partition",
        metavar="NAME",
        help="what a group was in all its fits with groups, such as person; needed if there were "
        "any",
    )
    _add_unit(upgrade)
    text = "print what was spent and what is left"
    show = actions.add_parser("show", help=text, description=text, allow_abbrev=False)
    show.set_defaults(run=_ledger.show, parser=show)
    show.add_argument("file", metavar="FILE", help="the ledger")


def _add_unit(parser: _Parser) -> None:
    parser.add_argument(
        "--unit",
        metavar="NAME",
        help="what the budget is for: record, or what a group is, such as person (default: record)",
    )
    parser.add_argument(
        "--same-class",
        action="store_true",
        help="the budget is for those whose class stays, so that classifiers can be recorded",
    )


def _add_ball(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--center",
        metavar="FILE|private",
        help="a file with one point, chosen without the records; without it the identity matrix or "
        "zero, and an error on spheres. 'private' spends part of mu to find it",
    )
    group.add_argument(
        "--outer-radius",
        type=_number,
        metavar="R",
        help="with a private center or radius: a distance that all records surely keep; it may be "
        "much too large. Not needed on spheres",
    )


def _add_records(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--key", metavar="NAME", help="the array to take from a .npz file of many")
    group.add_argument(
        "--header",
        choices=HEADERS,
        default="auto",
        help="whether the first line of a .csv file names the columns: yes, no, or only if none of "
        "its cells is a number or a missing value (auto, the default)",
    )
    persons = group.add_mutually_exclusive_group()
    persons.add_argument(
        "--groups",
        metavar="FILE",
        help="the person that each record belongs to, if some have several: .npy, .csv or .txt "
        "with one label for each record, in the same order, and no line of names. A person with "
        "all records is then what is protected",
    )
    persons.add_argument(
        "--group-column",
        metavar="NAME",
        help="the same, from the column of this name in a .csv file of records",
    )
    group.add_argument(
        "--unit",
        metavar="NAME",
        help="what one group is, such as person: the page and the ledger say it. Needed with "
        "groups and a ledger",
    )
    group.add_argument(
        "--invalid",
        choices=("raise", "replace"),
        default="raise",
        help="what to do with records that are no points of the manifold, not finite, missing or "
        "no numbers: stop with an error, which nothing protects, or count them as the center, in "
        "silence (default: raise)",
    )


def _add_more(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--variance",
        action="store_true",
        help="also release the variance, the mean squared distance to the mean; mu then pays for "
        "both",
    )
    group.add_argument(
        "--confidence-level",
        type=_number,
        default=0.95,
        metavar="LEVEL",
        help="of the confidence region and the interval (default: 0.95)",
    )
    group.add_argument(
        "--noise",
        choices=NOISES,
        default="auto",
        help="secure: exact noise, or an error where there is none; float: noise whose last digits "
        "can tell more than mu says, and the release says so; auto: exact where it can be had "
        "(default: auto)",
    )
    group.add_argument(
        "--mechanism",
        choices=MECHANISMS,
        default="auto",
        help="how noise is added to the mean; a pair of space and mechanism without a proof is "
        "refused (default: auto)",
    )
    group.add_argument(
        "--force", action="store_true", help="replace the output files if they are there already"
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, got {text!r}") from None


def _number_or_private(text: str) -> float | str:
    return text if text == "private" else _number(text)
