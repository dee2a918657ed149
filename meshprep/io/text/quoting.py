"""What a file holds, fit for a message of one line."""

# Letters of a name that a message shows, and of a whole message.
_MOST, _MOST_OF_MESSAGE = 40, 400


def quoted(text: str | bytes) -> str:
    """A name between quotes, cut short, with ``?`` for what cannot be printed."""
    if isinstance(text, bytes):
        found = text.decode("utf-8", "replace")
    else:
        found = text
    return f"'{_printable(_shorten(found, _MOST))}'"


def one_line(text: str) -> str:
    """A message without line breaks and unprintable letters, cut where it is too long."""
    return _shorten(_printable(" ".join(text.split())), _MOST_OF_MESSAGE)


def _shorten(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}..."


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
