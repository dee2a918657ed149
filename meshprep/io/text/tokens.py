"""Reading and writing numbers in text or binary files, inside numba kernels.

A negative position ``-1 - p`` means that there is no such number at ``p``. Nothing is read
past the end of the bytes.
"""

from typing import Any

import numpy as np

from ...kernels import Float64s, Int64s, UInt8s, helper, kernel
from ...kernels.arrays import ZERO
from .decimal import is_blank, parse_double, put_digits, put_double

# None for binary, little-endian: numba then leaves out what it does not reach, decimal
# numbers.
ASCII, LITTLE = 0, None
Mode = int | None
BLANK, BREAK, RETURN = 32, 10, 13
# Bytes of a binary whole number, short or as wide as sizes, and how many to take. Typed, so
# that helpers are not compiled again for each constant.
SHORT: Any = np.int64(4)
WIDE: Any = np.int64(8)
SINGLE: Any = np.int64(1)
# Bytes that one number takes at most, its separator included.
INT_ROOM, DOUBLE_ROOM = 21, 26


@helper
def skip_blank(data: UInt8s, pos: int) -> int:
    """The first position at or behind ``pos`` that is not blank."""
    while pos < data.size and is_blank(data[np.uint64(pos)]):
        pos += 1
    return pos


@helper
def skip_line(data: UInt8s, pos: int) -> tuple[int, int]:
    """Behind the words on the rest of this line, and how many there are. O(bytes)."""
    words, inside = 0, False
    while pos < data.size:
        byte = data[np.uint64(pos)]
        if byte in (BREAK, RETURN):
            break
        word = not is_blank(byte)
        words += word and not inside
        inside = word
        pos += 1
    return pos, words


@helper
def next_int(data: UInt8s, pos: int) -> tuple[int, int]:
    """A whole number of text."""
    pos = skip_blank(data, pos)
    start = pos
    n = data.size
    negative = pos < n and data[np.uint64(pos)] == 45
    if pos < n and (negative or data[np.uint64(pos)] == 43):
        pos += 1
    first = pos
    value = 0
    while pos < n and 48 <= data[np.uint64(pos)] <= 57:
        value = value * 10 + int(np.int64(data[np.uint64(pos)] - 48))
        pos += 1
    # Beyond 18 digits it might not fit.
    if pos == first or pos - first > 18 or (pos < n and not is_blank(data[np.uint64(pos)])):
        return 0, -1 - start
    return -value if negative else value, pos


@helper
def _bits(data: UInt8s, pos: int, width: int) -> np.uint64:
    """The word of some bytes, lowest first.

    NumPy's views would take a second to compile for each type.
    """
    word = np.uint64(0)
    for k in range(width):
        word |= np.uint64(data[np.uint64(pos + k)]) << np.uint64(8 * k)
    return word


@helper
def take_ints(
    data: UInt8s, pos: int, mode: Mode, width: int, out: Int64s, start: int, n: int
) -> int:
    """``n`` whole numbers into ``out`` from ``start`` on; returns the position behind."""
    if mode is None:
        if n > (data.size - pos) // width:
            return -1 - data.size
        for i in range(start, start + n):
            if width == SHORT:
                out[i] = np.int32(_bits(data, pos, 4))
            else:
                out[i] = np.int64(_bits(data, pos, 8))
            pos += width
        return pos
    for i in range(start, start + n):
        out[i], pos = next_int(data, pos)
        if pos < 0:
            break
    return pos


@helper
def take_doubles(
    data: UInt8s, pos: int, mode: Mode, out: Float64s, start: int, stop: int
) -> int:
    """Doubles into ``out[start:stop]``; returns the position behind."""
    if mode is None:
        if stop - start > (data.size - pos) // 8:
            return -1 - data.size
        for i in range(start, stop):
            out[i] = np.uint64(_bits(data, pos, 8)).view(np.float64)
            pos += 8
        return pos
    for i in range(start, stop):
        pos = skip_blank(data, pos)
        out[i], end = parse_double(data, pos)
        if end < 0:
            return -1 - pos
        pos = end
    return pos


@kernel
def take_rows(
    data: UInt8s, pos: int, mode: Mode, width: int, ints: Int64s, values: Float64s
) -> int:
    """Rows of whole numbers followed by doubles into (n, a) ``ints`` and (n, c) ``values``.

    Returns the position behind. O(bytes).
    """
    n_ints = ints.shape[1]
    n_doubles = values.shape[1]
    flat = ints.reshape(-1)
    numbers = values.reshape(-1)
    for i in range(len(ints)):
        pos = take_ints(
            data=data,
            pos=pos,
            mode=mode,
            width=width,
            out=flat,
            start=i * n_ints,
            n=n_ints,
        )
        if pos >= 0:
            pos = take_doubles(
                data=data,
                pos=pos,
                mode=mode,
                out=numbers,
                start=i * n_doubles,
                stop=i * n_doubles + n_doubles,
            )
        if pos < 0:
            break
    return pos


@helper
def put_int(out: UInt8s, pos: int, mode: Mode, width: int, value: int, end: int) -> int:
    """Write a whole number and, in text, the byte ``end``."""
    if mode != ASCII:
        return _put_bytes(out=out, pos=pos, width=width, value=np.uint64(value))
    if value < 0:
        out[pos] = 45
        pos += 1
    pos = put_digits(out, pos, np.uint64(abs(value)))
    out[np.uint64(pos)] = end
    return pos + 1


@helper
def _put_bytes(out: UInt8s, pos: int, width: int, value: np.uint64) -> int:
    for i in range(width):
        out[np.uint64(pos + i)] = np.uint8(value)
        value >>= np.uint64(8)
    return pos + width


@helper
def put_float(out: UInt8s, pos: int, mode: Mode, value: float, end: int) -> int:
    """Write a double and, in text, the byte ``end``."""
    if mode != ASCII:
        return put_int(
            out=out,
            pos=pos,
            mode=mode,
            width=8,
            value=int(np.float64(value).view(np.int64)),
            end=end,
        )
    pos = put_double(out, pos, value)
    out[pos] = end
    return pos + 1


@kernel
def put_rows(out: UInt8s, ints: Int64s, values: Float64s) -> int:
    """Write rows of whole numbers and doubles as text; return the number of bytes."""
    # Typed, so that the kernels below are compiled once.
    pos = ZERO
    n_ints = ints.shape[1]
    n_doubles = values.shape[1]
    for i in range(len(ints)):
        for j in range(n_ints):
            pos = put_int(
                out=out,
                pos=pos,
                mode=ASCII,
                width=4,
                value=ints[i, j],
                end=BLANK if j + 1 < n_ints + n_doubles else BREAK,
            )
        for j in range(n_doubles):
            pos = put_float(
                out=out,
                pos=pos,
                mode=ASCII,
                value=values[i, j],
                end=BLANK if j + 1 < n_doubles else BREAK,
            )
    return pos
