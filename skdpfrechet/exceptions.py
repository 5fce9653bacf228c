"""Errors of this package that are none of Python's own."""

__all__ = ["ConvergenceError"]


class ConvergenceError(RuntimeError):
    """The exact mean that ``mu=inf`` asks for was not found. No private fit raises it.

    Examples
    --------
    >>> from skdpfrechet.exceptions import ConvergenceError
    >>> issubclass(ConvergenceError, RuntimeError)
    True
    """
