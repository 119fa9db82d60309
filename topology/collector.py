"""
Python's collector of garbage, put to rest while a fleet is made.

A large fleet is a million small objects that all stay. Looking through them for garbage again and
again while they are made finds none, costs a third of the time, and makes twice the fleet cost
more than twice. Memory is freed as ever; only rings of objects wait until the work is done.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def at_rest() -> Generator[None]:
    """May be nested, and leaves a collector that was off already off."""
    working = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if working:
            gc.enable()
