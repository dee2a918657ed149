"""Decimal text to double and back, inside numba kernels.

Reading follows Lemire, *Number parsing at a gigabyte per second*, Softw. Pract. Exp. 51,
2021; writing finds the shortest decimal that reads back as the same double, after
Giulietti's *Schubfach*. Both multiply by a power of ten known to 128 bits. Of numbers with
more than 19 digits the first 19 count: half-way between two doubles but for the rest,
either is read.
"""

import numpy as np

from ...kernels import UInt8s, UInt64s, helper

LOWEST = -342
HIGHEST = 324
U64 = np.uint64
_MASK32 = U64(0xFFFFFFFF)
_HIDDEN = U64(1 << 52)
_INF = U64(0x7FF << 52)
_SIGN = U64(1 << 63)
_U0 = U64(0)
_U1 = U64(1)
_U2 = U64(2)
_U3 = U64(3)
_U4 = U64(4)
_U10 = U64(10)
_U32 = U64(32)
_U40 = U64(40)
_U63 = U64(63)
_LONGEST_MANTISSA = U64(10**18)


def _powers_of_ten(rounding_up: tuple[tuple[int, int], ...]) -> UInt64s:
    """Leading 128 bits (high, low) of 10^q, q in LOWEST..HIGHEST, rounded up there."""
    out = np.empty((HIGHEST - LOWEST + 1, 2), dtype=np.uint64)
    for q in range(LOWEST, HIGHEST + 1):
        power = 5 ** abs(q)
        if q < 0:
            bits = (1 << (127 + power.bit_length())) // power
        else:
            bits = power << 128
        bits >>= bits.bit_length() - 128
        bits += any(low <= q <= high for low, high in rounding_up)
        out[q - LOWEST] = bits >> 64, bits & (1 << 64) - 1
    return out


_FOR_READING = _powers_of_ten(((-27, -1),))
_FOR_WRITING = _powers_of_ten(((LOWEST, -1), (56, HIGHEST)))


@helper
def _multiply(a: U64, b: U64) -> tuple[U64, U64]:
    """The 128-bit product as (high, low)."""
    a_low = a & _MASK32
    a_high = a >> _U32
    b_low = b & _MASK32
    b_high = b >> _U32
    low = a_low * b_low
    cross = a_high * b_low
    middle = (low >> _U32) + (cross & _MASK32) + a_low * b_high
    high = a_high * b_high + (cross >> _U32) + (middle >> _U32)
    return high, (middle << _U32) | (low & _MASK32)


@helper
def _leading_zeros(x: U64) -> int:
    n = 0
    for shift in (32, 16, 8, 4, 2, 1):
        if x >> U64(64 - shift) == _U0:
            n += shift
            x = x << U64(shift)
    return n


@helper
def nearest_bits(mantissa: U64, power: int) -> U64:
    """Bits of the double nearest to mantissa * 10^power, ties to even. O(1)."""
    if mantissa == _U0 or power < LOWEST:
        return _U0
    if power > 308:
        return _INF
    # Multiply the mantissa, shifted to its highest bit, by the upper half of the power.
    # Where all nine bits below those that are kept are ones, the lower half may carry
    # into them: add it.
    zeros = _leading_zeros(mantissa)
    shifted = mantissa << U64(zeros)
    high, low = _multiply(shifted, _FOR_READING[power - LOWEST, 0])
    if high & U64(0x1FF) == U64(0x1FF):
        more, _ = _multiply(shifted, _FOR_READING[power - LOWEST, 1])
        low = low + more
        if low < more:
            high += _U1
    # Keep 53 bits and one to round by. The exponent is that of 10^power, whose logarithm
    # to base 2 is power * 217706 / 2^16 (rounded down), with the bias and the shifts.
    upper = high >> _U63
    shift = upper + U64(9)
    digits = high >> shift
    exponent = ((217706 * power) >> 16) + 1086 + int(np.int64(upper)) - zeros
    if exponent <= 0:
        return _subnormal(digits, exponent)
    # Exactly half-way, which only small powers allow: round to even.
    if low <= _U1 and -4 <= power <= 23 and digits & _U3 == _U1 and digits << shift == high:
        digits = digits & ~_U1
    digits = (digits + (digits & _U1)) >> _U1
    if digits >= _HIDDEN << _U1:
        digits = _HIDDEN
        exponent += 1
    if exponent >= 0x7FF:
        return _INF
    return (digits & ~_HIDDEN) | (U64(exponent) << U64(52))


@helper
def _subnormal(digits: U64, exponent: int) -> U64:
    if 1 - exponent >= 64:
        return _U0
    digits = digits >> U64(1 - exponent)
    # Reaching the hidden bit sets the exponent to 1 by itself.
    return (digits + (digits & _U1)) >> _U1


@helper
def is_blank(char: int) -> bool:
    """Whether this byte separates numbers."""
    return char == 32 or 9 <= char <= 13


@helper
def parse_double(text: UInt8s, pos: int) -> tuple[float, int]:
    """The number that begins at ``pos``, and its end: -1 where there is none."""
    n = text.size
    # Collect the first 19 digits as a whole number, and count in the power of ten those
    # that are left out before the point, and those that are taken behind it.
    sign = _U0
    if pos < n and (text[pos] == 45 or text[pos] == 43):
        sign = _SIGN if text[pos] == 45 else _U0
        pos += 1
    start = pos
    mantissa = _U0
    power = 0
    has_digits = False
    point = False
    while pos < n:
        c = text[U64(pos)]
        if 48 <= c <= 57:
            has_digits = True
            if mantissa < _LONGEST_MANTISSA:
                mantissa = mantissa * _U10 + U64(c - 48)
                power -= point
            else:
                power += not point
        elif c == 46 and not point:
            point = True
        else:
            break
        pos += 1
    if not has_digits:
        return _parse_word(text, start, sign)
    pos, exponent = _parse_exponent(text, pos)
    if pos < 0 or (pos < n and not is_blank(text[pos])):
        return 0.0, -1
    return U64(nearest_bits(mantissa, power + exponent) | sign).view(np.float64), pos


@helper
def _parse_exponent(text: UInt8s, pos: int) -> tuple[int, int]:
    n = text.size
    if pos >= n or (text[pos] != 101 and text[pos] != 69):
        return pos, 0
    pos += 1
    negative = pos < n and text[pos] == 45
    if pos < n and (text[pos] == 45 or text[pos] == 43):
        pos += 1
    start = pos
    value = 0
    while pos < n and 48 <= text[pos] <= 57:
        # Capped: beyond any file, and so that a long mantissa cannot bring it back.
        value = min(value * 10 + int(np.int64(text[pos] - 48)), 1 << 50)
        pos += 1
    if pos == start:
        return -1, 0
    return pos, -value if negative else value


@helper
def _parse_word(text: UInt8s, pos: int, sign: U64) -> tuple[float, int]:
    """``nan`` and ``inf`` in any case."""
    n = text.size
    end = pos + 3
    if end > n or (end < n and not is_blank(text[end])):
        return 0.0, -1
    a = text[pos] | 32
    b = text[pos + 1] | 32
    c = text[pos + 2] | 32
    if a == 110 and b == 97 and c == 110:
        return np.nan, end
    if a == 105 and b == 110 and c == 102:
        return U64(_INF | sign).view(np.float64), end
    return 0.0, -1


@helper
def _round_to_odd(power: int, c: U64) -> U64:
    x, _ = _multiply(_FOR_WRITING[power - LOWEST, 1], c)
    high, low = _multiply(_FOR_WRITING[power - LOWEST, 0], c)
    low = low + x
    if low < x:
        high += _U1
    return high | U64(low > _U1)


@helper
def shortest(bits: U64) -> tuple[U64, int]:
    """Digits and exponent of the shortest decimal nearest to a finite double > 0. O(1)."""
    fraction = bits & (_HIDDEN - _U1)
    # The double is c 2^q; a whole number below 2^53 has its own digits.
    biased = int(np.int64((bits >> U64(52)) & U64(0x7FF)))
    c = fraction
    q = -1074
    if biased != 0:
        c = fraction | _HIDDEN
        q = biased - 1075
        if -53 < q <= 0 and c & ((_U1 << U64(-q)) - _U1) == _U0:
            return c >> U64(-q), 0
    # All between the points half-way to both neighbours reads back as this double, and so
    # do these points where c is even. Below a power of two the neighbour is only half as
    # far. Take k as the logarithm to base 10 of the distance of the points (log10 2 is
    # 1262611 / 2^22), rounded down, and scale the value and both points to 10^k / 4.
    uneven = fraction == _U0 and biased > 1
    k = (q * 1262611 - (524031 if uneven else 0)) >> 22
    h = U64(q + ((-k * 1741647) >> 19) + 1)
    odd = c & _U1
    lower = _round_to_odd(-k, (_U4 * c - _U2 + U64(uneven)) << h) + odd
    value = _round_to_odd(-k, (_U4 * c) << h)
    upper = _round_to_odd(-k, (_U4 * c + _U2) << h) - odd
    # Take a decimal with one digit fewer if just one lies between these points, else the
    # only one at 10^k, else the nearer of two.
    s = value >> _U2
    if s >= _U10:
        tens = s // _U10
        below = lower <= _U40 * tens
        above = _U40 * tens + _U40 <= upper
        if below != above:
            return tens + U64(above), k + 1
    below = lower <= _U4 * s
    above = _U4 * s + _U4 <= upper
    if below != above:
        return s + U64(above), k
    middle = _U4 * s + _U2
    return s + U64(value > middle or (value == middle and s & _U1 == _U1)), k


@helper
def put_digits(out: UInt8s, pos: int, value: U64) -> int:
    """Write an unsigned whole number at ``pos``; returns the end. At most 20 bytes."""
    n = 1
    digits_left = value
    while digits_left >= _U10:
        digits_left = digits_left // _U10
        n += 1
    p = U64(pos + n)
    for _ in range(n):
        p -= _U1
        digits_left = value // _U10
        out[p] = np.uint8(U64(48) + (value - digits_left * _U10))
        value = digits_left
    return pos + n


@helper
def put_double(out: UInt8s, pos: int, value: float) -> int:
    """Write a double so that it reads back exactly; returns the end. At most 25 bytes."""
    bits = np.float64(value).view(np.uint64)
    if value != value:
        return _put_word(out=out, pos=pos, a=110, b=97, c=110)
    if bits & _SIGN != _U0:
        out[pos] = 45
        pos += 1
        bits = bits & ~_SIGN
    if bits == _INF:
        return _put_word(out=out, pos=pos, a=105, b=110, c=102)
    if bits == _U0:
        out[pos] = 48
        return pos + 1
    # Leave out zeros at the end of the digits.
    digits, power = shortest(bits)
    while digits >= _U10:
        tens = digits // _U10
        if tens * _U10 != digits:
            break
        digits = tens
        power += 1
    return _put_decimal(out=out, pos=pos, digits=digits, power=power)


@helper
def _put_word(out: UInt8s, pos: int, a: int, b: int, c: int) -> int:
    out[pos] = a
    out[pos + 1] = b
    out[pos + 2] = c
    return pos + 3


@helper
def _put_decimal(out: UInt8s, pos: int, digits: U64, power: int) -> int:
    stop = put_digits(out, pos, digits)
    n = stop - pos
    point = n + power
    if power >= 0 and point <= 17:
        out[stop : stop + power] = 48
        return stop + power
    if 0 < point < n:
        return _insert_point(out, pos + point, stop)
    if -4 < point <= 0:
        # Shift the digits behind "0." and the zeros.
        for i in range(n - 1, -1, -1):
            out[pos + 2 - point + i] = out[pos + i]
        out[pos : pos + 2 - point] = 48
        out[pos + 1] = 46
        return pos + 2 - point + n
    if n > 1:
        stop = _insert_point(out, pos + 1, stop)
    # An exponent has a sign and two digits at least, as C prints it.
    out[stop] = 101
    out[stop + 1] = 45 if point < 1 else 43
    stop += 2
    exponent = abs(point - 1)
    if exponent < 10:
        out[stop] = 48
        stop += 1
    return put_digits(out, stop, U64(exponent))


@helper
def _insert_point(out: UInt8s, at: int, stop: int) -> int:
    for i in range(stop - 1, at - 1, -1):
        out[i + 1] = out[i]
    out[at] = 46
    return stop + 1
