"""``python -m skdpfrechet``: the command line."""

from skdpfrechet._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
