"""Output files that are known to be writable before any budget is spent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def reserve(path: Path, force: bool) -> Iterator[Callable[[str], None]]:
    """Return a function that writes a text to `path`, all of it or nothing.

    Until then a draft lies next to `path`, which shows that one may write there and keeps other
    runs away.

    Raises
    ------
    ValueError
        If `path` is there already and `force` is not set, if another run is about to write it, or
        if nothing can be written there.
    """
    if path.is_dir():
        raise ValueError(f"{path} is a folder.")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already; --force replaces it.")
    draft = path.with_name(f".{path.name}.part")
    try:
        file = draft.open("x", encoding="utf-8")
    except FileExistsError:
        raise ValueError(
            f"another run is about to write {path}; if it was stopped, remove {draft}."
        ) from None
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from None

    def save(text: str) -> None:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        draft.replace(path)

    try:
        with file:
            yield save
    finally:
        draft.unlink(missing_ok=True)
