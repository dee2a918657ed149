"""The text of the function that runs a range of elements in order.

Maps come as unsigned integers, which spares the test for negative indices that numba would make;
``U`` is ``np.uint64``, since signed and unsigned 64-bit integers together make a float.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ...kernel.rows import Row
from ...types.loops import Access

LARGEST_CHUNK, LANES = 32, 4
# Partial sums of a global in a loop that changes nothing through a map, taken in turn, so that no
# addition waits for the one before. Other loops have more to wait for, and from four components on
# the additions are a vector, half as fast with partial sums.
SUMS, MOST_SUMMED = 8, 3
# Chunks that fill half of a 32 KB first-level cache leave it to the dats.
CHUNK_BYTES = 16 * 1024

# Forms of the code. ``"rows"``: the kernel on the dats in place, as a plain loop would have it;
# ``"local"``: the same, but what it adds goes to a short row on the stack first, which is added as
# vectors; ``"chunk"``: some elements at a time are copied, component by component, computed in SIMD
# and stored. All take the elements one after the other, and the rows of an element in the order of
# the arguments, and take the same partial sums of globals, so that sums have the same bits; in a
# chunk no element may see what another one wrote through a map.
ROWS, LOCAL, CHUNK = "rows", "local", "chunk"


@dataclass(frozen=True)
class ElementCode:
    """What the text depends on."""

    rows: tuple[Row, ...]
    params: tuple[str, ...]  # names of maps and arrays, in the order of the call
    permuted: bool = False  # element ``i`` of a range is ``order[i]``
    maps_permuted: bool = False  # the maps have been brought into that order already
    form: str = CHUNK
    fetches: bool = False  # a parameter ``ahead`` says whether rows are asked for ahead
    suffix: str = ""  # of the names ``elements`` and ``kernel``, where several loops share one text

    def text(self) -> str:
        """``def elements(start, stop, order, ...)``."""
        lines = [f"def elements{self.suffix}(start, stop, order, {', '.join(self.params)}):"]
        arrays = dict.fromkeys(r.array for r in self.rows if r.soa and r.dim > 1)
        dims = {r.array: r.dim for r in self.rows}
        lines += [f"    n_{a} = U({a}.size) // U({dims[a]})" for a in arrays]
        lines += ["    far = ahead[0]"] if self.fetches else []
        return "\n".join(lines + (self._chunked() if self.form == CHUNK else self._plain())) + "\n"

    def _plain(self) -> list[str]:
        """The kernel on the dats themselves, one element after the other."""
        rows = list(enumerate(self.rows))
        local = [(n, r) for n, r in rows if self.form == LOCAL and (r.adds or r.reduces)]
        local = [(n, r) for n, r in local if not r.placed]
        placed = [(n, r) for n, r in rows if r.placed]
        own = dict([*local, *placed])
        begin, end = self._totals([(n, r) for n, r in rows if r.reduces])
        taken = [(n, self._in_place(n, r)) for n, r in rows]
        given = [f"b{n}" if n in own else name for n, name in taken]
        element = [
            *self._ahead(f"i + U({LARGEST_CHUNK})"),
            *self._clear_placed(1),
            *[line for n, r in local for line in _cleared(n, r)],
            *self._element("i", "e"),
            f"kernel{self.suffix}({', '.join(given)})",
            *[line for n, r in local for line in self._leave(n, r)],
            *[line for n, r in placed for line in self._add_placed(n, r, "U(0)", 1)],
        ]
        return [
            *[f"    b{n} = stack({r.array}, {r.dim})" for n, r in own.items()],
            *begin,
            *self._every(element),
            *end,
        ]

    def _every(self, element: Sequence[str]) -> list[str]:
        """A loop over all elements, with partial sums of so many inside another one."""
        if not any(map(self._in_sums, self.rows)):
            return ["    for i in range(U(start), U(stop)):", *_indent(2, element)]
        return [
            f"    whole = U(stop) - (U(stop) - U(start)) % U({SUMS})",
            f"    for first in range(U(start), whole, U({SUMS})):",
            f"        for lane in range(U({SUMS})):",
            "            i = first + lane",
            *_indent(3, element),
            "    for i in range(whole, U(stop)):",
            "        lane = i - whole",
            *_indent(2, element),
        ]

    def _in_sums(self, r: Row) -> bool:
        """True for a global that is added to in partial sums."""
        changes = any(other.table and other.stored for other in self.rows)
        return r.reduces and r.access is Access.INC and r.dim <= MOST_SUMMED and not changes

    def _totals(self, rows: Sequence[tuple[int, Row]]) -> tuple[list[str], list[str]]:
        """What begins and ends totals of globals on the stack.

        Those of few components stay in registers, and no thread writes beside another one.
        """
        begin, end = list[str](), list[str]()
        for n, r in rows:
            if self._in_sums(r):
                over = f"    for k in range({SUMS * r.dim}):"
                begin += [f"    t{n} = stack({r.array}, {SUMS * r.dim})", over]
                begin.append(f"        t{n}[k] = {r.start(0)}")
                end += [over, f"        {r.array}[k // {SUMS}] += t{n}[k]"]
            else:
                begin.append(f"    t{n} = stack({r.array}, {r.dim})")
                begin += [f"    t{n}[{k}] = {r.array}[{k}]" for k in range(r.dim)]
                end += [f"    {r.array}[{k}] = t{n}[{k}]" for k in range(r.dim)]
        return begin, end

    def _leave(self, n: int, r: Row) -> list[str]:
        """Add a local row to its dat, or to the totals of a global."""
        if r.reduces:
            totals = [f"t{n}[{k}]" for k in range(r.dim)]
            if self._in_sums(r):
                totals = [f"t{n}[lane + U({k * SUMS})]" for k in range(r.dim)]
            return [f"{t} = {r.combined(t, f'b{n}[{k}]')}" for k, t in enumerate(totals)]
        offset = r.offset(self._mapped("i", "e"), "e")
        if r.dim == 1:
            return [f"{r.array}[{offset}] += b{n}[0]"]
        if r.soa:
            more = [f"{r.component(f'p{n}', k)} += b{n}[{k}]" for k in range(r.dim)]
            return [f"p{n} = {offset}", *more]
        return [f"add_row({r.array}, {offset}, b{n}, U(0), {r.dim})"]

    def _chunked(self) -> list[str]:
        size = chunk_size(self.rows)
        begin, end = self._totals([(n, r) for n, r in enumerate(self.rows) if self._in_sums(r)])
        buffered = [(n, r) for n, r in enumerate(self.rows) if not r.constant]
        given = [
            r.array if r.constant else f"spread(b{n}, j, {r.dim}, U({size}), {r.only_read})"
            for n, r in enumerate(self.rows)
        ]
        return [
            *[f"    b{n} = stack({r.array}, {size * r.dim})" for n, r in buffered],
            *[f"    c{n} = stack({r.array}, {LANES * r.dim})" for n, r in buffered if r.in_rows],
            *begin,
            f"    for first in range(U(start), U(stop), U({size})):",
            f"        count = min(U({size}), U(stop) - first)",
            *_indent(2, self._fetch(size)),
            *_indent(2, self._gather(size)),
            *_indent(2, self._clear_placed(size)),
            f"        for j in range(U({size})):",
            *_indent(3, self._clear(size)),
            f"            kernel{self.suffix}({', '.join(given)})",
            *_indent(2, self._scatter(size)),
            *_indent(2, self._reduce(size)),
            *end,
        ]

    def _fetch(self, size: int) -> list[str]:
        """Ask for the rows of the next chunk."""
        lines = [f"for j in range(first + U({size}), first + U({2 * size})):"]
        body = self._ahead("j")
        return [*lines, *_indent(1, body)] if body else []

    def _ahead(self, place: str) -> list[str]:
        """Ask for the rows of one element; components of SoA dats would be a line each."""
        wanted: dict[str, None] = {}
        for r in self.rows:
            read_on = r.table is None and not self.permuted
            if self.fetches and not (read_on or r.is_global or r.placed or (r.soa and r.dim > 1)):
                at = r.offset(self._mapped("a", "g"), "g")
                wanted[f"fetch({r.array}, {at}, {r.dim}, {int(r.stored)})"] = None
        if not wanted:
            return []
        body = [f"a = min({place}, U(stop) - U(1))", *self._element("a", "g"), *wanted]
        return ["if far:", *_indent(1, body)]

    def _gather(self, size: int) -> list[str]:
        loaded = [(n, r) for n, r in enumerate(self.rows) if r.loaded]
        if not loaded:
            return []
        # The last chunk is filled up with copies of its last element, which are not stored.
        body = []
        for t in range(LANES):
            body.append(f"i{t} = first + min(j + U({t}), count - U(1))")
            body += self._element(f"i{t}", f"e{t}")
        for n, r in loaded:
            offsets = [r.offset(self._mapped(f"i{t}", f"e{t}"), f"e{t}") for t in range(LANES)]
            if r.soa and r.dim > 1:
                body += [f"p{t} = {o}" for t, o in enumerate(offsets)]
                body += [
                    f"b{n}[j + U({k * size + t})] = {r.component(f'p{t}', k)}"
                    for k in range(r.dim)
                    for t in range(LANES)
                ]
            else:
                body.append(f"load4(b{n}, {size}, j, {r.array}, ({', '.join(offsets)}), {r.dim})")
        return [f"for j in range(U(0), U({size}), U({LANES})):", *_indent(1, body)]

    def _clear(self, size: int) -> list[str]:
        """Sums start from zero, the least and the largest from what has been found so far."""
        lines = []
        for n, r in enumerate(self.rows):
            if r.cleared and not r.placed:
                lines += [f"b{n}[j + U({k * size})] = {r.start(k)}" for k in range(r.dim)]
        return lines

    def _clear_placed(self, size: int) -> list[str]:
        """Matrices of elements start from zero; a loop, as they may have hundreds of values."""
        lines = []
        for n, r in enumerate(self.rows):
            if r.placed:
                lines += [f"for k in range(U({r.dim * size})):", f"    b{n}[k] = 0"]
        return lines

    def _add_placed(self, n: int, r: Row, j: str, size: int) -> list[str]:
        """Add the matrix of one element where its values have places; -1 is past any place."""
        if r.table is None:
            at = f"e * U({r.dim}) + k"
            copy = f"    {r.array}[{at}] = b{n}[k * U({size}) + {j}]"
            return [f"for k in range(U({r.dim})):", copy]
        return [
            f"for k in range(U({r.dim})):",
            f"    p = U({r.table}[{self._mapped('i', 'e')}, k])",
            f"    if p < U({r.array}.size):",
            f"        {r.array}[p] += b{n}[k * U({size}) + {j}]",
        ]

    def _scatter(self, size: int) -> list[str]:
        placed = [(n, r) for n, r in enumerate(self.rows) if r.placed]
        stored = [(n, r) for n, r in enumerate(self.rows) if r.stored and not r.placed]
        lines = self._scatter_rows(stored, size)
        if placed:
            add = [line for n, r in placed for line in self._add_placed(n, r, "j", size)]
            body = ["i = first + j", *self._element("i", "e"), *add]
            lines += ["for j in range(count):", *_indent(1, body)]
        return lines

    def _scatter_rows(self, stored: Sequence[tuple[int, Row]], size: int) -> list[str]:
        if not stored:
            return []
        vectors = [(n, r) for n, r in stored if not (r.soa and r.dim > 1)]
        single = [(n, r) for n, r in stored if r.soa and r.dim > 1]
        lines = []
        if vectors:
            lines += [
                f"if count == U({size}):",
                f"    for j in range(U(0), U({size}), U({LANES})):",
                *_indent(2, self._store_four(vectors, size)),
                "else:",
                "    for j in range(count):",
                *_indent(2, self._store_one(vectors, size)),
            ]
        if single:
            lines += ["for j in range(count):", *_indent(1, self._store_one(single, size))]
        return lines

    def _store_four(self, rows: Sequence[tuple[int, Row]], size: int) -> list[str]:
        lines, at = [], {}
        for t in range(LANES):
            lines += [f"i{t} = first + j + U({t})", *self._element(f"i{t}", f"e{t}")]
        for n, r in rows:
            at[n] = [r.offset(self._mapped(f"i{t}", f"e{t}"), f"e{t}") for t in range(LANES)]
            if r.in_rows:
                lines.append(f"to_rows(c{n}, b{n}, {size}, j, {r.dim})")
            elif not r.adds:
                lines.append(f"store4({r.array}, ({', '.join(at[n])}), {r.dim}, b{n}, {size}, j)")
        for t in range(LANES):
            for n, r in rows:
                if r.in_rows:
                    lines.append(f"add_row({r.array}, {at[n][t]}, c{n}, U({t * r.dim}), {r.dim})")
                elif r.adds:
                    lines.append(f"{r.array}[{at[n][t]}] += b{n}[j + U({t})]")
        return lines

    def _store_one(self, rows: Sequence[tuple[int, Row]], size: int) -> list[str]:
        lines = ["i = first + j", *self._element("i", "e")]
        for n, r in rows:
            lines.append(f"p{n} = {r.offset(self._mapped('i', 'e'), 'e')}")
            sign = "+=" if r.adds else "="
            lines += [
                f"{r.component(f'p{n}', k)} {sign} b{n}[j + U({k * size})]" for k in range(r.dim)
            ]
        return lines

    def _reduce(self, size: int) -> list[str]:
        lines = []
        for n, r in enumerate(self.rows):
            if r.reduces:
                lines.append("for j in range(count):")
                for k in range(r.dim):
                    total, value = f"{r.array}[{k}]", f"b{n}[j + U({k * size})]"
                    if self._in_sums(r):
                        total = f"t{n}[U({k * SUMS}) + j % U({SUMS})]"
                    lines.append(f"    {total} = {r.combined(total, value)}")
        return lines

    def _element(self, i: str, e: str) -> list[str]:
        return [f"{e} = U(order[{i}])" if self.permuted else f"{e} = {i}"]

    def _mapped(self, i: str, e: str) -> str:
        return i if self.maps_permuted else e

    def _in_place(self, n: int, r: Row) -> str:
        if self._in_sums(r):
            return f"spread(t{n}, lane, {r.dim}, U({SUMS}), 0)"
        if r.is_global:
            return f"t{n}" if r.reduces else r.array
        offset = r.offset(self._mapped("i", "e"), "e")
        if r.soa and r.dim > 1:
            return f"spread({r.array}, {offset}, {r.dim}, {r.stride}, {r.only_read})"
        return f"row({r.array}, {offset}, {r.dim}, {r.only_read})"


def chunk_size(rows: Sequence[Row]) -> int:
    """Elements a chunk: 32, fewer where their rows would fill the cache."""
    nbytes = sum(r.dim * r.itemsize for r in rows if not r.constant)
    size = LARGEST_CHUNK
    while size > 2 * LANES and size * nbytes > CHUNK_BYTES:
        size //= 2
    return size


def _cleared(n: int, r: Row) -> list[str]:
    if r.dim <= LANES or r.reduces:
        return [f"b{n}[{k}] = {r.start(k)}" for k in range(r.dim)]
    return [f"for k in range({r.dim}):", f"    b{n}[k] = {r.start(0)}"]


def can_chunk(rows: Sequence[Row]) -> bool:
    """False where an element must see what the one before it wrote through a map."""
    return not any(r.table is not None and r.stored and not r.adds for r in rows)


def _indent(depth: int, lines: Sequence[str]) -> list[str]:
    return ["    " * depth + line for line in lines]
