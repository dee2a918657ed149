"""Random numbers that are the same on every machine."""

import numpy as np

from ...kernels import Int32s, arrayless


@arrayless
def shuffle(values: Int32s, count: int, seed: int) -> None:
    """Shuffle the first values in place, by xorshift of 64 bits."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    for k in range(count - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.int64((state >> np.uint64(11)) % np.uint64(k + 1))
        value = values[k]
        values[k] = values[other]
        values[other] = value
