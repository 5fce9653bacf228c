"""The command line, for those who keep data and do not program: a file in, a release out.

The highest layer: it reads files, runs the estimators and writes what they released.
"""

from skdpfrechet._cli._parser import main

__all__ = ["main"]
