"""
Values that fleetd makes up, from random bytes that OpenBao gives.

Pure: bytes in, text out, so that a world with a seed gives the same secrets every time. A recipe
is how a value looks, and may be shown; what it makes may not.
"""

import base64
from collections.abc import Callable

Draw = Callable[[int], bytes]
"""So many random bytes."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_FAIR = 256 - 256 % len(LETTERS)
"""Bytes from here on are thrown away, or some letters would come more often."""


def text(length: int, draw: Draw) -> str:
    """Letters and digits."""
    made = ""
    while len(made) < length:
        fair = [byte for byte in draw(2 * length) if byte < _FAIR]
        made += "".join(LETTERS[byte % len(LETTERS)] for byte in fair)
    return made[:length]


def make(recipe: str, draw: Draw) -> str:
    """`text:32`, `hex:64` (characters), `base64:32` (bytes), `garage-id`. Raises ValueError."""
    kind, _, count = recipe.partition(":")
    match kind:
        case "text" | "letters-and-digits":
            return text(int(count), draw)
        case "hex":
            length = int(count)
            return draw((length + 1) // 2).hex()[:length]
        case "base64":
            return base64.b64encode(draw(int(count))).decode()
        case "garage-id":
            return f"GK{draw(12).hex()}"
        case _:
            raise ValueError(f"{recipe} is not a recipe")
