"""Messages of one line."""

import sys
from contextlib import suppress

# Letters of a word of a message, and of a message.
LONGEST_WORD, LONGEST_MESSAGE = 300, 3000


def shortened(text: str, most: int) -> str:
    """Text of at most so many letters: of longer text the middle is left out."""
    if len(text) <= most:
        return text
    left = f"...({len(text):,} letters)..."
    head = (most - len(left) + 1) // 2
    return f"{text[:head]}{left}{text[len(text) - (most - len(left) - head) :]}"


def one_line(text: str) -> str:
    """A message as one line, long names shortened."""
    line = " ".join(shortened(word, LONGEST_WORD) for word in text.split())
    return shortened(line, LONGEST_MESSAGE)


def tell(line: str) -> None:
    """Print a line on standard error, where that takes any: a full disk there stops no work."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)  # noqa: T201
