"""Standard output for results alone: what libraries in C print goes to standard error."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_stdout() -> Iterator[None]:
    """Give ``sys.stdout`` a descriptor of its own, and point descriptor 1 at standard error.

    METIS, say, prints remarks between the lines of a JSON document. Where ``sys.stdout`` is not
    descriptor 1 (a caller has put something else there), nothing changes.
    """
    if not _is_descriptor_1():
        yield
        return
    before = sys.stdout
    before.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        encoding, errors = before.encoding, before.errors
        with os.fdopen(os.dup(kept), "w", encoding=encoding, errors=errors) as own:
            sys.stdout = own
            yield
    finally:
        sys.stdout = before
        os.dup2(kept, 1)
        os.close(kept)


def _is_descriptor_1() -> bool:
    try:
        os.fstat(2)
        return sys.stdout.fileno() == 1
    except (AttributeError, OSError, ValueError):
        return False
