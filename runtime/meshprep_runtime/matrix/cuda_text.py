"""The bodies of the products' kernels in CUDA C.

As in loops, x is ``s0`` and y is ``s1``. The values of rows are ``s2``; those of elements
are ``values``, copied in the order of the blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.source.rows import Lines, indent
from ..cuda.strategies import WARP
from ..errors import MeshprepError, check_integer

# Threads of a block, at most.
MOST_BLOCK = 512
# The fixed rule: threads of a block, and the least number of blocks with which threads
# repeat.
BLOCK_SIZE = 128
BLOCKS_WANTED = 1500


@dataclass(frozen=True)
class CsrThreads:
    """How the threads of a GPU share the rows of a matrix.

    Raises MeshprepError for numbers that no launch can have.
    """

    block_size: int  # threads of a thread block, a multiple of 32
    coop: int  # threads that share a row: 1, 2, 4, ..., 32
    repeat: int  # rows that each group of ``coop`` threads takes, one after the other

    def __post_init__(self) -> None:
        if self.block_size % WARP or not WARP <= self.block_size <= MOST_BLOCK:
            raise MeshprepError(
                f"block_size is {self.block_size}: give a multiple of {WARP} up to "
                f"{MOST_BLOCK}"
            )
        if self.coop not in (1, 2, 4, 8, 16, 32):
            raise MeshprepError(f"coop is {self.coop}: give 1, 2, 4, 8, 16 or 32")
        check_integer("repeat", self.repeat)

    def blocks(self, rows: int) -> int:
        """Thread blocks of a launch [R14 equation 4.7]; 0 where there are no rows."""
        return -(-rows * self.coop // (self.repeat * self.block_size))


def fixed_rule(rows: int, nonzeros: int) -> CsrThreads:
    """The parameters that suit most matrices [R14 4.5.1].

    Blocks of 128 threads; ``coop`` is the least power of two above the root of the mean row
    length, at most 32; ``repeat`` is the largest with which 1,500 thread blocks are left.
    O(1).
    """
    coop = 1
    while coop < WARP and coop * coop * max(rows, 1) <= nonzeros:
        coop *= 2
    return CsrThreads(BLOCK_SIZE, coop, largest_repeat(rows, coop))


def largest_repeat(rows: int, coop: int) -> int:
    """The largest ``repeat`` with which 1,500 thread blocks are left; at least 1."""
    # blocks(rows) >= 1500 means rows x coop > 1499 x repeat x 128
    return max((rows * coop - 1) // ((BLOCKS_WANTED - 1) * BLOCK_SIZE), 1)


def kernel_text(
    name: str,
    most_threads: int,
    slots: Sequence[str],
    parameters: Sequence[str],
    body: Lines,
) -> str:
    """A kernel for blocks of up to ``most_threads`` threads."""
    listed = ",\n    ".join(parameters)
    lines = [f"// s{i}: {slot}" for i, slot in enumerate(slots)]
    lines += [f"MP_KERNEL({most_threads}) {name}(\n    {listed}) {{"]
    return "\n".join([*lines, *indent(body), "  MP_RETURN;", "}", ""])


def csr_rows_body(kind: str, coop: int) -> Lines:
    """``y = A x``: a group of ``coop`` threads takes row after row [R14 Figure 4.12].

    Threads without a row take part in the sums of their warp.
    """
    # The threads of a group stride through the entries of a row, then add up their sums.
    return [
        f"const int lane = MP_THREAD % {coop};",
        f"Index i = ((Index)MP_BLOCK * repeat * MP_THREADS + MP_THREAD) / {coop};",
        f"for (Index r = 0; r < repeat; ++r, i += MP_THREADS / {coop}) {{",
        "  Index begin = 0, end = 0;",
        "  if (i < rows) {",
        "    begin = row_ptr[i];",
        "    end = row_ptr[i + 1];",
        "  }",
        "  const bool own = i < rows;",
        f"  {kind} sum = 0;",
        "  if (own) {",
        f"    for (Index j = begin + lane; j < end; j += {coop})",
        "      sum += s2[j] * s0[columns[j]];",
        "  }",
        *indent(_sum_of_group(kind, coop)),
        "  if (own && lane == 0) s1[i] = sum;",
        "}",
    ]


def ellpack_rows_body(kind: str) -> Lines:
    """``y = A x``: a thread a row; neighbours read neighbouring entries [R14 3.3.1]."""
    return [
        "const Index i = (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (i < rows) {",
        f"  {kind} sum = 0;",
        "  for (Index k = 0; k < width; ++k) {",
        "    const int column = columns[k * rows + i];",
        "    if (column < 0) break;",
        "    sum += s2[k * rows + i] * s0[column];",
        "  }",
        "  s1[i] = sum;",
        "}",
    ]


def _sum_of_group(kind: str, coop: int) -> Lines:
    """Give the first of each ``coop`` threads the sum of all of them."""
    # Halve the distance in each step, as in a tree.
    distances = [coop >> k for k in range(1, coop.bit_length())]
    lines: Lines = []
    for distance in distances:
        lines += [
            "{",
            f"  {kind} other;",
            f"  MP_SHUFFLE_DOWN(other, sum, {distance});",
            "  sum += other;",
            "}",
        ]
    return lines


def sweep_rows_body(kind: str, coop: int) -> Lines:
    """``y_i = x_i - inverse_i (A y)_i`` for the rows of a colour [R14 3.3].

    A row takes ``coop`` threads. y is zero in the rows of later colours; the entry on the
    diagonal is left out, since a thread writes that value of y.
    """
    # Rows of a colour do not touch each other, so that old and new values never mix.
    return [
        f"const int lane = MP_THREAD % {coop};",
        f"const Index place = first + ((Index)MP_BLOCK * MP_THREADS + MP_THREAD) / {coop};",
        "const bool own = place < last;",
        "const int row = own ? by_colour[place] : 0;",
        f"{kind} sum = 0;",
        "if (own) {",
        "  const Index end = row_ptr[row + 1];",
        f"  for (Index j = row_ptr[row] + lane; j < end; j += {coop})",
        "    if (columns[j] != row) sum += s2[j] * s1[columns[j]];",
        "}",
        *_sum_of_group(kind, coop),
        "if (own && lane == 0) s1[row] = s0[row] - inverse[row] * sum;",
    ]


def sweep_local_body(kind: str, n: int) -> Lines:
    """:func:`sweep_rows_body` for matrices of elements: a thread a row [R14 4.4.6].

    The row sums over its elements; ``s2`` are the values of the elements.
    """
    # No other row of the launch is a dof of these elements, so that nothing races.
    return [
        "const Index place = first + (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (place < last) {",
        "  const int row = by_colour[place];",
        f"  {kind} sum = 0;",
        "  for (Index k = offset[row]; k < offset[row + 1]; ++k) {",
        "    const Index e = element[k];",
        f"    for (int j = 0; j < {n}; ++j) {{",
        f"      const int dof = dofs[e * {n} + j];",
        f"      const int at = entry[local_row[k] * {n} + j];",
        "      if (dof >= 0 && dof != row)",
        "        sum += s2[e * values_of_element + at] * s1[dof];",
        "    }",
        "  }",
        "  s1[row] = s0[row] - inverse[row] * sum;",
        "}",
    ]


def zero_body() -> Lines:
    """``y = 0``, before elements add to y."""
    return [
        "const Index i = (Index)MP_BLOCK * MP_THREADS + MP_THREAD;",
        "if (i < rows) s1[i] = 0;",
    ]


def local_elements_body(kind: str, n: int) -> Lines:
    """``y += K x``: a thread for each element, with all entries of its matrix."""
    multiply = [
        "#pragma unroll",
        f"for (int i = 0; i < {n}; ++i) {{",
        f"  {kind} sum = 0;",
        "#pragma unroll",
        f"  for (int j = 0; j < {n}; ++j)",
        f"    sum += values[(Index)(i * {n} + j) * elements + place] * from[j];",
        "  to[i] = sum;",
        "}",
    ]
    return _in_blocks(kind, n, multiply)


def symmetric_elements_body(kind: str, n: int) -> Lines:
    """``y += K x`` from the entries on and above the diagonals [R14 4.2.2]."""
    # Entry (i, j) of the upper triangle is number row + j, row by row.
    multiply = [
        "#pragma unroll",
        f"for (int i = 0; i < {n}; ++i) to[i] = 0;",
        "#pragma unroll",
        f"for (int i = 0; i < {n}; ++i) {{",
        f"  const Index row = i * {n} - i * (i - 1) / 2 - i;",
        "#pragma unroll",
        f"  for (int j = i; j < {n}; ++j) {{",
        f"    const {kind} entry = values[(row + j) * elements + place];",
        "    to[i] += entry * from[j];",
        "    if (j > i) to[j] += entry * from[i];",
        "  }",
        "}",
    ]
    return _in_blocks(kind, n, multiply)


def _in_blocks(kind: str, n: int, multiply: Lines) -> Lines:
    """Load x of an element, multiply, and add to y by thread colours."""
    # Load and multiply at once; add colour by colour, with a barrier between, so that no
    # two threads add to one dof.
    return [
        "const int b = block_order[first + MP_BLOCK];",
        "const Index place = block_offset[b] + MP_THREAD;",
        "const bool active = place < block_offset[b + 1];",
        f"int dof[{n}];",
        f"{kind} from[{n}], to[{n}];",
        "if (active) {",
        "#pragma unroll",
        f"  for (int i = 0; i < {n}; ++i) {{",
        "    dof[i] = dofs[i * elements + place];",
        "    from[i] = 0;",
        "    if (dof[i] >= 0) from[i] = s0[dof[i]];",
        "  }",
        *indent(multiply),
        "}",
        "for (int c = 0; c < thread_colours[b]; ++c) {",
        "  if (active && thread_colour[place] == c) {",
        "#pragma unroll",
        f"    for (int i = 0; i < {n}; ++i)",
        "      if (dof[i] >= 0) s1[dof[i]] += to[i];",
        "  }",
        "  MP_BARRIER();",
        "}",
    ]
