"""Base64 of large arrays: on all cores, and at the speed of the memory."""

from __future__ import annotations

import binascii

import numpy as np
from numpy.typing import NDArray

from ...kernels import kernel
from ...kernels.parallel import each, pieces

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WRONG = 255


def _values() -> NDArray[np.uint8]:
    out = np.full(256, _WRONG, dtype=np.uint8)
    out[np.frombuffer(_ALPHABET, dtype=np.uint8)] = np.arange(64)
    return out


_VALUE = _values()


def letters(n: int) -> int:
    """How many letters stand for ``n`` bytes."""
    return (n + 2) // 3 * 4


def decode(text: str, start: int, n: int) -> NDArray[np.uint8] | None:
    """``n`` bytes from the letters that begin at ``start``. O(n).

    None where there is anything but letters, or too few of them.
    """
    stop = start + letters(n)
    if stop > len(text) or not text.isascii():
        return None
    whole = n // 3
    source = np.frombuffer(text[start:stop].encode(), dtype=np.uint8)
    out = np.empty(n, dtype=np.uint8)
    good = all(each(_decode, [(source, a, b, _VALUE, out) for a, b in pieces(whole)]))
    try:
        rest = binascii.a2b_base64(source[4 * whole :].data, strict_mode=True)
    except binascii.Error:
        return None
    if not good or len(rest) != n - 3 * whole:
        return None
    out[3 * whole :] = np.frombuffer(rest, dtype=np.uint8)
    return out


@kernel
def _decode(
    source: NDArray[np.uint8],
    first: int,
    stop: int,
    value: NDArray[np.uint8],
    out: NDArray[np.uint8],
) -> bool:
    """Groups ``first`` to ``stop - 1`` of four letters, three bytes each."""
    wrong = np.uint32(0)
    u1, u2, u3, u4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(np.uint64(first), np.uint64(stop)):
        s, t = u4 * i, u3 * i
        a, b = np.uint32(value[source[s]]), np.uint32(value[source[s + u1]])
        c, d = np.uint32(value[source[s + u2]]), np.uint32(value[source[s + u3]])
        wrong |= a | b | c | d
        both = a << np.uint32(18) | b << np.uint32(12) | c << np.uint32(6) | d
        out[t] = np.uint8(both >> np.uint32(16))
        out[t + u1] = np.uint8(both >> np.uint32(8))
        out[t + u2] = np.uint8(both)
    return bool(wrong < 64)
