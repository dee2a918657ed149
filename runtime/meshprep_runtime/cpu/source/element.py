"""The text of the function that runs a range of elements in order.

Maps are passed as unsigned integers, so that numba does not test indices for being
negative; ``U`` is ``np.uint64``, since signed and unsigned 64-bit integers together make a
float. ``U4`` is the constant ``U(4)``, defined before the function: numba takes longer to
compile a call than a name. For the same reason what is done for each row is one call of an
intrinsic, see :mod:`.vectors`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...kernel.rows import Row
from ...types.loops import Access

LARGEST_CHUNK = 32  # elements
LANES = 4  # rows that are transposed together, see :mod:`.vectors`
# Partial sums of a global, taken in turn, so that no addition waits for the one before.
SUMS = 8
# Components of a global that is added to in partial sums, at most: from four on the
# additions are a vector, half as fast with partial sums. Loops that change dats through
# maps have none, since they wait for more than these additions.
MOST_SUMMED = 3
# Constants of the text.
UNSIGNED = re.compile(r"\bU(\d+)\b")
# Bytes of a chunk, at most: half of a first-level cache of 32 KB, the rest is for the dats.
CHUNK_BYTES = 16 * 1024

# Forms of the code. All take the elements one after the other. What an element adds to a
# global is summed in a row of its own first, and partial sums of globals are the same in
# all forms, so that the results have the same bits.
#
# The kernel works on the dats in place, as in a plain loop.
ROWS = "rows"
# Rows that the kernel adds to are copied to the stack and back, so that the compiler knows
# that they are apart from all other rows. They must be.
LOCAL = "local"
# Some elements at a time are copied, component by component; the kernel computes them in
# SIMD, with sums that start from zero, which are added to the dats afterwards. So no
# element may read what another one wrote through a map, see :mod:`...kernel.sums`.
CHUNK = "chunk"


@dataclass(frozen=True)
class ElementCode:
    """Writes the text; its fields are all that the text depends on."""

    rows: tuple[Row, ...]
    params: tuple[str, ...]  # names of maps and arrays, in the order of the call
    permuted: bool = False  # element ``i`` of a range is ``order[i]``
    maps_permuted: bool = False  # the maps are in that order already
    form: str = CHUNK
    fetches: bool = False  # a parameter ``ahead`` says whether rows are fetched ahead
    # Of the names ``elements`` and ``kernel``, where several loops share a text.
    suffix: str = ""
    # The rows that each parameter of the kernel takes; empty where each takes one.
    rows_of_parameters: tuple[int, ...] = ()

    def text(self) -> str:
        """``def elements(start, stop, order, ...)``, after the constants that it uses."""
        params = ", ".join(self.params)
        lines = [
            f"def elements{self.suffix}(start, stop, order, {params}):",
            "    begin = U(start)",
            "    end = U(stop)",
        ]
        # The strides of SoA dats, which rows use by name.
        dims = {r.array: r.dim for r in self.rows}
        arrays = dict.fromkeys(r.array for r in self.rows if r.soa and r.dim > 1)
        lines += [f"    n_{a} = U({a}.size) // U{dims[a]}" for a in arrays]
        if self.fetches:
            lines.append("    far = ahead[0]")
        lines += self._chunked() if self.form == CHUNK else self._plain()
        text = "\n".join(lines) + "\n"
        numbers = sorted({int(number) for number in UNSIGNED.findall(text)})
        constants = "".join(f"U{number} = U({number})\n" for number in numbers)
        return f"{constants}\n\n{text}"

    def _plain(self) -> list[str]:
        """The kernel on the dats themselves, one element after the other."""
        # Find the rows that need a buffer: sums of globals, rows that are copied, and
        # entries of matrices.
        rows = list(enumerate(self.rows))
        added = [(n, r) for n, r in rows if r.reduces and r.access is Access.INC]
        copied = [(n, r) for n, r in rows if self.form == LOCAL and r.summed]
        placed = [(n, r) for n, r in rows if r.placed]
        buffered = dict([*added, *copied, *placed])
        begin, end = self._totals([(n, r) for n, r in rows if r.reduces])
        arguments = [f"b{n}" if n in buffered else self._in_place(n, r) for n, r in rows]

        # Start the buffers, call the kernel, and bring the buffers to dats and globals.
        element = [
            *self._ahead(f"i + U{LARGEST_CHUNK}"),
            *self._clear_placed(1),
        ]
        for n, r in added:
            element += [f"b{n}[{k}] = {r.start(k)}" for k in range(r.dim)]
        element += self._element("i", "e")
        known_points = set[str]()
        for n, r in copied:
            element += [*self._find(r, "i", "e", known_points), self._copy(n, r)]
        for n, r in rows:
            if n not in buffered:
                element += self._find(r, "i", "e", known_points)
        element.append(self._call(arguments))
        for n, r in copied:
            element.append(self._copy_back(n, r))
        for n, r in added:
            element += self._combine(n, r)
        for n, r in placed:
            element += self._add_placed(n=n, r=r, j="U0", size=1)
        return [
            *[f"    b{n} = stack({r.array}, {r.dim})" for n, r in buffered.items()],
            *begin,
            *self._every(element),
            *end,
        ]

    def _every(self, element: Sequence[str]) -> list[str]:
        """A loop over all elements; for partial sums in blocks of ``SUMS`` elements.

        ``lane`` is the partial sum of an element.
        """
        if not any(map(self._in_sums, self.rows)):
            return ["    for i in range(begin, end):", *_indent(2, element)]
        # Element i adds to sum i % SUMS: additions to different sums overlap.
        return [
            f"    whole = end - (end - begin) % U{SUMS}",
            f"    for first in range(begin, whole, U{SUMS}):",
            f"        for lane in range(U{SUMS}):",
            "            i = first + lane",
            *_indent(3, element),
            "    for i in range(whole, end):",
            "        lane = i - whole",
            *_indent(2, element),
        ]

    def _in_sums(self, r: Row) -> bool:
        """True for a global that is added to in partial sums."""
        changes = any(other.table and other.stored for other in self.rows)
        return r.reduces and r.access is Access.INC and r.dim <= MOST_SUMMED and not changes

    def _totals(self, rows: Sequence[tuple[int, Row]]) -> tuple[list[str], list[str]]:
        """The lines that begin and that end totals of globals on the stack.

        Totals of few components stay in registers, and no thread writes beside another one.
        """
        begin = list[str]()
        end = list[str]()
        for n, r in rows:
            # Several sums side by side do not wait for each other's additions.
            if self._in_sums(r):
                over_sums = f"    for k in range({SUMS * r.dim}):"
                begin.append(f"    t{n} = stack({r.array}, {SUMS * r.dim})")
                begin.append(over_sums)
                begin.append(f"        t{n}[k] = {r.start(0)}")
                end.append(over_sums)
                end.append(f"        {r.array}[k // {SUMS}] += t{n}[k]")
            else:
                begin.append(f"    t{n} = stack({r.array}, {r.dim})")
                begin += [f"    t{n}[{k}] = {r.array}[{k}]" for k in range(r.dim)]
                end += [f"    {r.array}[{k}] = t{n}[{k}]" for k in range(r.dim)]
        return begin, end

    def _combine(self, n: int, r: Row) -> list[str]:
        """Add the buffer of an element to the totals of a global."""
        totals = [f"t{n}[{k}]" for k in range(r.dim)]
        if self._in_sums(r):
            totals = [f"t{n}[lane + U{k * SUMS}]" for k in range(r.dim)]
        return [f"{t} = {r.combined(t, f'b{n}[{k}]')}" for k, t in enumerate(totals)]

    def _copy(self, n: int, r: Row) -> str:
        """Copy a row of a dat to the stack."""
        if r.soa and r.dim > 1:
            source = f"{r.array}, {self._point(r, 'e')}, {r.stride}"
            return f"copy_spread(b{n}, U0, U1, {source}, {r.dim})"
        return f"load_row(b{n}, {r.array}, {self._point(r, 'e')}, {r.dim})"

    def _copy_back(self, n: int, r: Row) -> str:
        """Copy a row from the stack to its dat."""
        if r.soa and r.dim > 1:
            target = f"{r.array}, {self._point(r, 'e')}, {r.stride}"
            return f"copy_spread({target}, b{n}, U0, U1, {r.dim})"
        return f"store_row({r.array}, {self._point(r, 'e')}, b{n}, {r.dim})"

    def _chunked(self) -> list[str]:
        """The kernel on chunks of elements."""
        size = chunk_size(self.rows)
        rows = list(enumerate(self.rows))
        begin, end = self._totals([(n, r) for n, r in rows if self._in_sums(r)])
        buffered = [(n, r) for n, r in rows if not r.constant]
        in_rows = [(n, r) for n, r in buffered if r.in_rows]
        # Component by component, the kernel gets every size-th value of a chunk.
        arguments = []
        for n, r in rows:
            if r.constant:
                arguments.append(r.array)
            else:
                arguments.append(f"spread(b{n}, j, {r.dim}, U{size}, {r.only_read})")
        # Load a chunk, run the kernel on all its elements in a loop that LLVM vectorises,
        # and store the chunk.
        return [
            *[f"    b{n} = stack({r.array}, {size * r.dim})" for n, r in buffered],
            *[f"    c{n} = stack({r.array}, {LANES * r.dim})" for n, r in in_rows],
            *begin,
            f"    for first in range(begin, end, U{size}):",
            f"        count = least(U{size}, end - first)",
            *_indent(2, self._fetch(size)),
            *_indent(2, self._gather(size)),
            *_indent(2, self._clear_placed(size)),
            f"        for j in range(U{size}):",
            *_indent(3, self._clear(size)),
            f"            {self._call(arguments)}",
            *_indent(2, self._scatter(size)),
            *_indent(2, self._reduce(size)),
            *end,
        ]

    def _fetch(self, size: int) -> list[str]:
        """Fetch the rows of the next chunk."""
        lines = [f"for j in range(first + U{size}, first + U{2 * size}):"]
        body = self._ahead("j")
        if body:
            return [*lines, *_indent(1, body)]
        return []

    def _ahead(self, place: str) -> list[str]:
        """Fetch the rows of the element at a place.

        Rows that are read one after the other need no fetching, and each component of an
        SoA dat would need a cache line of its own.
        """
        # A dict, so that a row that several arguments share is fetched once.
        fetches: dict[str, None] = {}
        known_points = set[str]()
        for r in self.rows:
            in_stream = r.table is None and not self.permuted
            if self.fetches and not (
                in_stream or r.is_global or r.placed or (r.soa and r.dim > 1)
            ):
                number = self._point(r, "g", "next_")
                fetches |= dict.fromkeys(self._find(r, "a", "g", known_points, "next_"))
                fetches[f"fetch({r.array}, {number}, {r.dim}, {int(r.stored)})"] = None
        if not fetches:
            return []
        body = [f"a = least({place}, end - U1)", *self._element("a", "g"), *fetches]
        return ["if far:", *_indent(1, body)]

    def _gather(self, size: int) -> list[str]:
        """Load the rows of a chunk, four elements at a time."""
        loaded = [(n, r) for n, r in enumerate(self.rows) if r.loaded]
        if not loaded:
            return []
        # The last chunk is filled up with copies of its last element, which are not stored.
        body = ["i4 = four_of(first, j, count)", *self._four_elements()]
        # Four rows are transposed in registers; rows of SoA lie component by component
        # already.
        known_points = set[str]()
        for n, r in loaded:
            body += self._find_four(r, known_points)
            numbers = self._point(r, "e4", "four_")
            values = f"{r.array}, {numbers}, {r.dim}"
            if r.soa and r.dim > 1:
                body.append(f"load4_spread(b{n}, {size}, j, {values}, {r.stride})")
            else:
                body.append(f"load4(b{n}, {size}, j, {values})")
        return [f"for j in range(U0, U{size}, U{LANES}):", *_indent(1, body)]

    def _clear(self, size: int) -> list[str]:
        """Start the buffers: sums from zero, minima and maxima from those so far."""
        lines = []
        for n, r in enumerate(self.rows):
            if not r.cleared or r.placed:
                continue
            if r.access is Access.INC:
                lines.append(f"clear(b{n}, j, {size}, {r.dim})")
            else:
                lines += [f"b{n}[j + U{k * size}] = {r.start(k)}" for k in range(r.dim)]
        return lines

    def _clear_placed(self, size: int) -> list[str]:
        """Start matrices of elements from zero, in a loop, since they may be large."""
        lines = []
        for n, r in enumerate(self.rows):
            if r.placed:
                lines += [f"for k in range(U{r.dim * size}):", f"    b{n}[k] = 0"]
        return lines

    def _add_placed(self, n: int, r: Row, j: str, size: int) -> list[str]:
        """Add the matrix of an element to the entries that have a place.

        Place -1, for none, becomes a number beyond all places without its sign.
        """
        if r.table is None:
            offset = f"e * U{r.dim} + k"
            copy = f"    {r.array}[{offset}] = b{n}[k * U{size} + {j}]"
            return [f"for k in range(U{r.dim}):", copy]
        return [
            f"for k in range(U{r.dim}):",
            f"    p = U({r.table}[{self._mapped('i', 'e')}, k])",
            f"    if p < U({r.array}.size):",
            f"        {r.array}[p] += b{n}[k * U{size} + {j}]",
        ]

    def _scatter(self, size: int) -> list[str]:
        """Bring the buffers of a chunk to the dats."""
        placed = [(n, r) for n, r in enumerate(self.rows) if r.placed]
        stored = [(n, r) for n, r in enumerate(self.rows) if r.stored and not r.placed]
        lines = self._scatter_rows(stored, size)
        if placed:
            body = ["i = first + j", *self._element("i", "e")]
            for n, r in placed:
                body += self._add_placed(n=n, r=r, j="j", size=size)
            lines += ["for j in range(count):", *_indent(1, body)]
        return lines

    def _scatter_rows(self, stored: Sequence[tuple[int, Row]], size: int) -> list[str]:
        """Store or add rows: vectors of four rows in whole chunks, else value by value."""
        if not stored:
            return []
        # Rows of SoA lie component by component: there is nothing to transpose.
        vectors = [(n, r) for n, r in stored if not (r.soa and r.dim > 1)]
        single = [(n, r) for n, r in stored if r.soa and r.dim > 1]
        lines = []
        if vectors:
            lines += [
                f"if count == U{size}:",
                f"    for j in range(U0, U{size}, U{LANES}):",
                *_indent(2, self._store_four(vectors, size)),
                "else:",
                "    for j in range(count):",
                *_indent(2, self._store_one(vectors, size)),
            ]
        if single:
            lines += ["for j in range(count):", *_indent(1, self._store_one(single, size))]
        return lines

    def _store_four(self, rows: Sequence[tuple[int, Row]], size: int) -> list[str]:
        """Store or add rows of the four elements from ``j`` on."""
        lines = ["i4 = four_from(first + j)", *self._four_elements()]
        # Store what elements set, four rows at a time.
        known_points = set[str]()
        for n, r in rows:
            if r.in_rows:
                lines.append(f"to_rows(c{n}, b{n}, {size}, j, {r.dim})")
            elif not r.adds:
                lines += self._find_four(r, known_points)
                numbers = self._point(r, "e4", "four_")
                lines.append(f"store4({r.array}, {numbers}, {r.dim}, b{n}, {size}, j)")
        # Add element by element: two of them may add to one row. The points are looked up
        # as late as that, since those of four elements would fill the registers.
        added = [(n, r) for n, r in rows if r.adds]
        for t in range(LANES if added else 0):
            lines += [f"i = i4[{t}]", f"e = e4[{t}]"]
            known_points = set[str]()
            for n, r in added:
                lines += self._find(r, "i", "e", known_points)
                row = f"c{n}, U{t * r.dim}" if r.in_rows else f"b{n}, j + U{t}"
                lines.append(f"add_row({r.array}, {self._point(r, 'e')}, {row}, {r.dim})")
        return lines

    def _store_one(self, rows: Sequence[tuple[int, Row]], size: int) -> list[str]:
        """Store or add rows of element ``j`` of the chunk, value by value."""
        lines = ["i = first + j", *self._element("i", "e")]
        known_points = set[str]()
        for n, r in rows:
            lines += self._find(r, "i", "e", known_points)
            offset = self._point(r, "e")
            stride = r.stride
            if r.dim == 1 or not r.soa:
                offset = f"{offset} * U{r.dim}"
                stride = "U1"
            store = "add_spread" if r.adds else "copy_spread"
            lines.append(
                f"{store}({r.array}, {offset}, {stride}, b{n}, j, U{size}, {r.dim})"
            )
        return lines

    def _reduce(self, size: int) -> list[str]:
        """Combine the buffers of a chunk with the totals of globals."""
        lines = []
        for n, r in enumerate(self.rows):
            if r.reduces:
                lines.append("for j in range(count):")
                for k in range(r.dim):
                    total = f"{r.array}[{k}]"
                    value = f"b{n}[j + U{k * size}]"
                    if self._in_sums(r):
                        total = f"t{n}[U{k * SUMS} + j % U{SUMS}]"
                    lines.append(f"    {total} = {r.combined(total, value)}")
        return lines

    def _element(self, i: str, e: str) -> list[str]:
        """Set ``e`` to the element at place ``i``."""
        return [f"{e} = U(order[{i}])" if self.permuted else f"{e} = {i}"]

    def _find(
        self, r: Row, i: str, e: str, known_points: set[str], prefix: str = ""
    ) -> list[str]:
        """Look up the point of a row for the element at place ``i``, but each once."""
        point = self._point(r, e, prefix)
        if r.table is None or point in known_points:
            return []
        known_points.add(point)
        return [f"{point} = mapped({r.table}, {self._mapped(i, e)}, {r.column})"]

    def _four_elements(self) -> list[str]:
        """Set ``e4`` to the elements at the places ``i4``."""
        return ["e4 = ordered4(order, i4)" if self.permuted else "e4 = i4"]

    def _find_four(self, r: Row, known_points: set[str]) -> list[str]:
        """Look up the points of a row for four elements, but each once."""
        point = self._point(r, "e4", "four_")
        if r.table is None or point in known_points:
            return []
        known_points.add(point)
        return [f"{point} = mapped4({r.table}, {self._mapped('i4', 'e4')}, {r.column})"]

    def _point(self, r: Row, e: str, prefix: str = "") -> str:
        """The name of the number of a row in its dat: of a point, or the element ``e``."""
        if r.table is None:
            return e
        return f"{prefix}{r.table}_{r.column}"

    def _mapped(self, i: str, e: str) -> str:
        """The row of the maps: place ``i``, or element ``e``."""
        if self.maps_permuted:
            return i
        return e

    def _call(self, rows: Sequence[str]) -> str:
        """The call of the kernel with rows, of which a parameter may take several."""
        arguments = []
        at = 0
        for count in self.rows_of_parameters or [1] * len(rows):
            own = ", ".join(rows[at : at + count])
            arguments.append(own if count == 1 else f"together(({own}))")
            at += count
        return f"kernel{self.suffix}({', '.join(arguments)})"

    def _in_place(self, n: int, r: Row) -> str:
        """The argument of the kernel for a row that stays where it lies."""
        if r.is_global:
            if r.reduces:
                return f"t{n}"
            return r.array
        number = self._point(r, "e")
        if r.soa and r.dim > 1:
            return f"spread({r.array}, {number}, {r.dim}, {r.stride}, {r.only_read})"
        return f"row({r.array}, {number}, {r.dim}, {r.only_read})"


def chunk_size(rows: Sequence[Row]) -> int:
    """Elements of a chunk: 32, fewer where their rows would fill the cache."""
    nbytes = sum(r.dim * r.dtype.itemsize for r in rows if not r.constant)
    size = LARGEST_CHUNK
    while size > 2 * LANES and size * nbytes > CHUNK_BYTES:
        size //= 2
    return size


def can_chunk(rows: Sequence[Row]) -> bool:
    """False where an element must see what the one before it wrote through a map."""
    return not any(r.table is not None and r.stored and not r.adds for r in rows)


def _indent(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
