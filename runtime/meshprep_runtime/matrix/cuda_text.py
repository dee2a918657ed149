"""The bodies of the products' kernels in CUDA C; x is ``s0``, y is ``s1``, as in loops.

The values are ``s2``, but those of elements, which are copied in the order of the blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..cuda.source.rows import Lines, indent
from ..cuda.strategies import WARP
from ..errors import MeshprepError, check_integer

MOST_BLOCK = 512
BLOCK_SIZE, BLOCKS_WANTED = 128, 1500


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
                f"block_size is {self.block_size}: give a multiple of {WARP} up to {MOST_BLOCK}"
            )
        if self.coop not in (1, 2, 4, 8, 16, 32):
            raise MeshprepError(f"coop is {self.coop}: give 1, 2, 4, 8, 16 or 32")
        check_integer("repeat", self.repeat)

    def blocks(self, rows: int) -> int:
        """Thread blocks of a launch [R14 equation 4.7]; 0 where there are no rows."""
        return -(-rows * self.coop // (self.repeat * self.block_size))


def fixed_rule(rows: int, nonzeros: int) -> CsrThreads:
    """The parameters that suit most matrices [R14 4.5.1].

    Blocks of 128 threads; ``coop`` is the least power of two above the root of the mean row length,
    at most 32; ``repeat`` is as large as 1,500 thread blocks allow. O(1).
    """
    coop = 1
    while coop < WARP and coop * coop * max(rows, 1) <= nonzeros:
        coop *= 2
    # blocks(rows) >= 1500 means rows x coop > 1499 x repeat x 128
    repeat = (rows * coop - 1) // ((BLOCKS_WANTED - 1) * BLOCK_SIZE)
    return CsrThreads(BLOCK_SIZE, coop, max(repeat, 1))


def whole(
    name: str, bound: int, slots: Sequence[str], parameters: Sequence[str], body: Lines
) -> str:
    """A kernel for blocks of up to ``bound`` threads."""
    listed = ",\n    ".join(parameters)
    lines = [f"// s{i}: {slot}" for i, slot in enumerate(slots)]
    lines += [f"MP_KERNEL({bound}) {name}(\n    {listed}) {{"]
    return "\n".join([*lines, *indent(body), "  MP_RETURN;", "}", ""])


def csr_rows(kind: str, coop: int) -> Lines:
    """Row after row of a group of ``coop`` threads [R14 Figure 4.12].

    Threads without a row take part in the sums of their warp.
    """
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
        *indent(_tree(kind, coop)),
        "  if (own && lane == 0) s1[i] = sum;",
        "}",
    ]


def _tree(kind: str, coop: int) -> Lines:
    """The first of each ``coop`` threads gets the sum of all of them."""
    steps = [coop >> k for k in range(1, coop.bit_length())]
    made = []
    for step in steps:
        made += [
            "{",
            f"  {kind} other;",
            f"  MP_SHUFFLE_DOWN(other, sum, {step});",
            "  sum += other;",
            "}",
        ]
    return made


def sweep_rows(kind: str, coop: int) -> Lines:
    """Rows of one colour, ``coop`` threads each: ``y_i = x_i - inverse_i (A y)_i`` [R14 3.3].

    y is zero in rows of colours to come; a row's own, which a thread writes, is left out.
    """
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
        *_tree(kind, coop),
        "if (own && lane == 0) s1[row] = s0[row] - inverse[row] * sum;",
    ]


def zero() -> Lines:
    """Before elements add to y, and before sweeps."""
    return ["const Index i = (Index)MP_BLOCK * MP_THREADS + MP_THREAD;", "if (i < rows) s1[i] = 0;"]


def local_elements(kind: str, n: int) -> Lines:
    """A thread an element, all entries of its matrix."""
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


def symmetric_elements(kind: str, n: int) -> Lines:
    """The same from the entries on and above the diagonal [R14 4.2.2]."""
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
    """Gather, multiply, and add by thread colours."""
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
