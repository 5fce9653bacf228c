"""Errors and warnings that are this package's own.

Each is also where it is raised; import them from here.
"""

__all__ = ["ConvergenceError"]


class ConvergenceError(RuntimeError):
    """The exact mean that ``mu=inf`` asks for was not found. No private fit raises it.

    Examples
    --------
    >>> from skdpfrechet.exceptions import ConvergenceError
    >>> issubclass(ConvergenceError, RuntimeError)
    True
    """
