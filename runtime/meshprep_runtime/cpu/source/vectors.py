"""Moves rows between dats and chunks: numba intrinsics that emit LLVM vectors.

A *chunk* is a short array on the stack that holds an argument of several elements,
component by component, so that LLVM vectorises the kernel over the elements. LLVM does not
find a fast way between rows and chunks itself (it emits gathers, or shuffles of whole
tables, both slower than no chunks at all), so four rows at a time are transposed here.

Whatever the text does for each row is one call here: numba takes a tenth of a millisecond
for each operation of a text, and none for those of an intrinsic.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from numba import types

from ..._numba.lowering import (
    array_of,
    index,
    index_from,
    intrinsic,
    ir,
    nothing,
    packed,
    pointer_to,
    row_length,
    stack_memory,
    unpacked,
    value_type,
)

# Rows that are transposed together.
LANES = 4
# Bytes of a cache line, and of the alignment of chunks.
LINE = 64
_I32 = ir.IntType(32)
_FOUR = types.UniTuple(types.uintp, LANES)


@intrinsic(prefer_literal=True)
def stack(typing: Any, like: Any, count: Any) -> Any:
    """An uninitialised array on the stack: ``count`` values of the dtype of ``like``.

    ``count`` is a literal.
    """
    array = types.Array(like.dtype, 1, "C")

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        length = count.literal_value
        data = stack_memory(builder, value_type(context, like.dtype), length, LINE)
        return _view(
            context=context,
            builder=builder,
            kind=array,
            data=data,
            count=length,
            stride=None,
        )

    return array(like, count), make


@intrinsic(prefer_literal=True)
def row(typing: Any, base: Any, number: Any, dim: Any, only_read: Any) -> Any:
    """Row ``number`` of a dat, without checks; dim and only_read are literals."""
    array = types.Array(base.dtype, 1, "C", readonly=bool(only_read.literal_value))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = _offset(context, builder, args[1], dim)
        data = pointer_to(context, builder, signature.args[0], args[0], offset)
        return _view(
            context=context,
            builder=builder,
            kind=array,
            data=data,
            count=dim.literal_value,
            stride=None,
        )

    return array(base, types.uintp, dim, only_read), make


@intrinsic(prefer_literal=True)
def spread(
    typing: Any, base: Any, offset: Any, dim: Any, stride: Any, only_read: Any
) -> Any:
    """``base[offset :: stride][:dim]`` without checks; dim and only_read are literals."""
    array = types.Array(base.dtype, 1, "A", readonly=bool(only_read.literal_value))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = pointer_to(context, builder, signature.args[0], args[0], args[1])
        return _view(
            context=context,
            builder=builder,
            kind=array,
            data=data,
            count=dim.literal_value,
            stride=args[3],
        )

    return array(base, types.uintp, dim, types.uintp, only_read), make


@intrinsic(prefer_literal=True)
def fetch(typing: Any, base: Any, number: Any, dim: Any, writes: Any) -> Any:
    """Prefetch row ``number`` of a dat, to write or to read.

    dim and writes are literals; writes is 1 or 0.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        offset = _offset(context, builder, args[1], dim)
        data = pointer_to(context, builder, kind, args[0], offset)
        pointer = builder.bitcast(data, ir.IntType(8).as_pointer())
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), shape)
        # Read or write, into all levels of cache, as data.
        flags = [ir.Constant(_I32, v) for v in (writes.literal_value, 3, 1)]
        nbytes = dim.literal_value * kind.dtype.bitwidth // 8
        for start in range(0, nbytes, LINE):
            line = builder.gep(pointer, [ir.Constant(_I32, start)])
            builder.call(prefetch, [line, *flags])
        return nothing(context)

    return types.void(base, types.uintp, dim, writes), make


@intrinsic
def least(typing: Any, one: Any, other: Any) -> Any:
    """The smaller of two indices; numba's ``min`` is a function that it compiles."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _least(builder, args[0], args[1])

    return types.uintp(types.uintp, types.uintp), make


@intrinsic(prefer_literal=True)
def mapped(typing: Any, table: Any, element: Any, column: Any) -> Any:
    """``table[element, column]`` as an index, without checks; column is a literal."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        return arguments.entry(0, args[1], column.literal_value)

    return types.uintp(table, types.uintp, column), make


@intrinsic
def four_from(typing: Any, first: Any) -> Any:
    """Four indices one after the other."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        following = [builder.add(args[0], index(context, t)) for t in range(LANES)]
        return packed(context, builder, _FOUR, following)

    return _FOUR(types.uintp), make


@intrinsic
def four_of(typing: Any, first: Any, j: Any, count: Any) -> Any:
    """The four indices from ``first + j`` on, but none from ``first + count`` on.

    These are ``first + count - 1`` instead.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        last = builder.sub(args[2], index(context, 1))
        following = []
        for t in range(LANES):
            place = _least(builder, builder.add(args[1], index(context, t)), last)
            following.append(builder.add(args[0], place))
        return packed(context, builder, _FOUR, following)

    return _FOUR(types.uintp, types.uintp, types.uintp), make


@intrinsic
def ordered4(typing: Any, order: Any, places: Any) -> Any:
    """``order[place]`` for four places."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        places_of_four = unpacked(builder, args[1], LANES)
        elements = [arguments.index_at(0, place) for place in places_of_four]
        return packed(context, builder, _FOUR, elements)

    return _FOUR(order, _FOUR), make


@intrinsic(prefer_literal=True)
def mapped4(typing: Any, table: Any, elements: Any, column: Any) -> Any:
    """:func:`mapped` for four elements."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        elements_of_four = unpacked(builder, args[1], LANES)
        points = [arguments.entry(0, e, column.literal_value) for e in elements_of_four]
        return packed(context, builder, _FOUR, points)

    return _FOUR(table, _FOUR, column), make


@intrinsic(prefer_literal=True)
def load4(
    typing: Any, chunk: Any, size: Any, j: Any, dat: Any, numbers: Any, dim: Any
) -> Any:
    """Load four rows of a dat into a chunk, for the elements from ``j`` on.

    ``numbers`` are those of the rows in the dat; size and dim are literals.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        offsets = arguments.offsets(4, dim)
        for k, width in _pieces_of_row(dim.literal_value):
            rows = [arguments.values(3, o, k, width).load() for o in offsets]
            for i, column in enumerate(_transpose(builder, rows)):
                component = (k + i) * size.literal_value
                arguments.values(0, args[2], component, LANES).store(column)
        return nothing(context)

    return types.void(chunk, size, types.uintp, dat, _FOUR, dim), make


@intrinsic(prefer_literal=True)
def load4_spread(
    typing: Any,
    chunk: Any,
    size: Any,
    j: Any,
    dat: Any,
    numbers: Any,
    dim: Any,
    stride: Any,
) -> Any:
    """:func:`load4` of a dat that lies component by component, at a distance."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers_of_rows = unpacked(builder, args[4], LANES)
        for k in range(dim.literal_value):
            shift = builder.mul(index(context, k), args[6])
            for t, number in enumerate(numbers_of_rows):
                place = builder.add(number, shift)
                value = pointer_to(context, builder, dat, args[3], place)
                lane = index(context, k * size.literal_value + t)
                place = builder.add(args[2], lane)
                target = pointer_to(context, builder, chunk, args[0], place)
                builder.store(builder.load(value), target)
        return nothing(context)

    return types.void(chunk, size, types.uintp, dat, _FOUR, dim, types.uintp), make


@intrinsic(prefer_literal=True)
def store4(
    typing: Any, dat: Any, numbers: Any, dim: Any, chunk: Any, size: Any, j: Any
) -> Any:
    """Store four rows of a chunk, of the elements from ``j`` on, into a dat."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        offsets = arguments.offsets(1, dim)
        for k, rows in _rows_of_chunk(arguments, 3, args[5], dim, size):
            for offset, values in zip(offsets, rows, strict=True):
                arguments.values(0, offset, k, values.type.count).store(values)
        return nothing(context)

    return types.void(dat, _FOUR, dim, chunk, size, types.uintp), make


@intrinsic(prefer_literal=True)
def to_rows(typing: Any, to: Any, chunk: Any, size: Any, j: Any, dim: Any) -> Any:
    """Store four rows of a chunk, of the elements from ``j`` on, one by one in ``to``."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        zero = index(context, 0)
        for k, rows in _rows_of_chunk(arguments, 1, args[3], dim, size):
            for t, values in enumerate(rows):
                first = t * dim.literal_value + k
                arguments.values(0, zero, first, values.type.count).store(values)
        return nothing(context)

    return types.void(to, chunk, size, types.uintp, dim), make


@intrinsic(prefer_literal=True)
def add_row(typing: Any, dat: Any, number: Any, row: Any, place: Any, dim: Any) -> Any:
    """Add ``row[place : place + dim]`` to row ``number`` of a dat; they do not overlap."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        offset = _offset(context, builder, args[1], dim)
        for k, width in _pieces_of_row(dim.literal_value, 2 * LANES):
            total = arguments.values(0, offset, k, width)
            added = arguments.values(2, args[3], k, width)
            total.store(arguments.sum(total.load(), added.load()))
        return nothing(context)

    return types.void(dat, types.uintp, row, types.uintp, dim), make


@intrinsic(prefer_literal=True)
def copy_row(typing: Any, to: Any, place: Any, dat: Any, offset: Any, dim: Any) -> Any:
    """``to[place : place + dim] = dat[offset : offset + dim]``.

    All values are loaded before the first is stored. In a loop over single values LLVM
    cannot know that the arrays are apart, and copies value by value.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _Arguments(context, builder, signature, args).copy_row(
            to=0, place=args[1], dat=2, offset=args[3], dim=dim
        )
        return nothing(context)

    return types.void(to, types.uintp, dat, types.uintp, dim), make


@intrinsic(prefer_literal=True)
def load_row(typing: Any, to: Any, dat: Any, number: Any, dim: Any) -> Any:
    """Copy row ``number`` of a dat to the start of ``to``, as :func:`copy_row` does."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _Arguments(context, builder, signature, args).copy_row(
            to=0,
            place=index(context, 0),
            dat=1,
            offset=_offset(context, builder, args[2], dim),
            dim=dim,
        )
        return nothing(context)

    return types.void(to, dat, types.uintp, dim), make


@intrinsic(prefer_literal=True)
def store_row(typing: Any, dat: Any, number: Any, row: Any, dim: Any) -> Any:
    """Copy the start of an array to row ``number`` of a dat."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        _Arguments(context, builder, signature, args).copy_row(
            to=0,
            place=_offset(context, builder, args[1], dim),
            dat=2,
            offset=index(context, 0),
            dim=dim,
        )
        return nothing(context)

    return types.void(dat, types.uintp, row, dim), make


@intrinsic(prefer_literal=True)
def copy_spread(
    typing: Any,
    to: Any,
    place: Any,
    stride: Any,
    dat: Any,
    offset: Any,
    stride_of_dat: Any,
    dim: Any,
) -> Any:
    """``to[place :: stride][:dim] = dat[offset :: stride_of_dat][:dim]``, one by one."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        for target, value in arguments.spread_pairs(dim.literal_value):
            builder.store(builder.load(value), target)
        return nothing(context)

    numbers = (types.uintp, types.uintp)
    return types.void(to, *numbers, dat, *numbers, dim), make


@intrinsic(prefer_literal=True)
def add_spread(
    typing: Any,
    to: Any,
    place: Any,
    stride: Any,
    values: Any,
    offset: Any,
    stride_of_values: Any,
    dim: Any,
) -> Any:
    """``to[place :: stride][:dim] += values[offset :: stride_of_values][:dim]``."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        arguments = _Arguments(context, builder, signature, args)
        for target, value in arguments.spread_pairs(dim.literal_value):
            total = arguments.sum(builder.load(target), builder.load(value))
            builder.store(total, target)
        return nothing(context)

    numbers = (types.uintp, types.uintp)
    return types.void(to, *numbers, values, *numbers, dim), make


@intrinsic(prefer_literal=True)
def clear(typing: Any, chunk: Any, j: Any, size: Any, dim: Any) -> Any:
    """Start the sums of element ``j`` of a chunk; size and dim are literals.

    Those of floats start from -0.0: adding it leaves every float as it is, also -0.0.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        start = -0.0 if isinstance(kind.dtype, types.Float) else 0
        zero = ir.Constant(value_type(context, kind.dtype), start)
        for k in range(dim.literal_value):
            place = builder.add(args[1], index(context, k * size.literal_value))
            builder.store(zero, pointer_to(context, builder, kind, args[0], place))
        return nothing(context)

    return types.void(chunk, types.uintp, size, dim), make


class _Arguments:
    """The arguments of an intrinsic; ``values`` gives values of those that are arrays."""

    def __init__(self, context: Any, builder: Any, signature: Any, args: Any) -> None:
        self.context = context
        self.builder = builder
        self._kinds = signature.args
        self._args = args

    def values(self, argument: int, offset: Any, shift: int, width: int) -> "_Values":
        """``width`` neighbouring values of an argument, from ``offset + shift`` on."""
        return _Values(
            context=self.context,
            builder=self.builder,
            kind=self._kinds[argument],
            array=self._args[argument],
            offset=offset,
            shift=shift,
            width=width,
        )

    def offsets(self, argument: int, dim: Any) -> list[Any]:
        """The offsets of four rows, whose numbers are an argument."""
        numbers = unpacked(self.builder, self._args[argument], LANES)
        return [_offset(self.context, self.builder, number, dim) for number in numbers]

    def index_at(self, argument: int, place: Any) -> Any:
        """A value of an array of integers, as an index."""
        kind = self._kinds[argument]
        array = self._args[argument]
        pointer = pointer_to(self.context, self.builder, kind, array, place)
        number = self.builder.load(pointer)
        return index_from(self.context, self.builder, kind.dtype, number)

    def entry(self, argument: int, row: Any, column: int) -> Any:
        """An entry of a table of integers, as an index."""
        kind = self._kinds[argument]
        arity = row_length(self.context, self.builder, kind, self._args[argument])
        row_start = self.builder.mul(row, arity)
        place = self.builder.add(row_start, index(self.context, column))
        return self.index_at(argument, place)

    def sum(self, one: Any, other: Any) -> Any:
        """The sum of two values, or vectors, of the first argument's dtype."""
        if isinstance(self._kinds[0].dtype, types.Float):
            return self.builder.fadd(one, other)
        return self.builder.add(one, other)

    def copy_row(self, to: int, place: Any, dat: int, offset: Any, dim: Any) -> None:
        """Copy neighbouring values between two arguments; all are loaded first."""
        pieces = _pieces_of_row(dim.literal_value)
        rows = [self.values(dat, offset, k, width).load() for k, width in pieces]
        for (k, width), row in zip(pieces, rows, strict=True):
            self.values(to, place, k, width).store(row)

    def spread_pairs(self, dim: int) -> Iterator[tuple[Any, Any]]:
        """Pointers into both arrays of :func:`copy_spread`, component by component."""
        for k in range(dim):
            yield self._component(0, k), self._component(3, k)

    def _component(self, argument: int, k: int) -> Any:
        """A pointer to component ``k`` of an array, which its place and stride follow."""
        array, place, stride = self._args[argument : argument + 3]
        shift = self.builder.mul(index(self.context, k), stride)
        place = self.builder.add(place, shift)
        kind = self._kinds[argument]
        return pointer_to(self.context, self.builder, kind, array, place)


class _Values:
    """A vector of ``width`` neighbouring values of an array, from ``offset + shift`` on."""

    def __init__(
        self,
        context: Any,
        builder: Any,
        kind: Any,
        array: Any,
        offset: Any,
        shift: int,
        width: int,
    ) -> None:
        self.builder = builder
        self.align = kind.dtype.bitwidth // 8
        shifted = builder.add(offset, index(context, shift))
        vector = ir.VectorType(value_type(context, kind.dtype), width)
        data = pointer_to(context, builder, kind, array, shifted)
        self.pointer = builder.bitcast(data, vector.as_pointer())

    def load(self) -> Any:
        value = self.builder.load(self.pointer)
        value.align = self.align
        return value

    def store(self, value: Any) -> None:
        self.builder.store(value, self.pointer).align = self.align


def _rows_of_chunk(
    arguments: _Arguments, chunk: int, j: Any, dim: Any, size: Any
) -> Iterator[tuple[int, list[Any]]]:
    """Pieces of four rows of a chunk, of the elements from ``j`` on.

    Yields the first component of each piece, and a vector for each row. ``chunk`` is the
    number of the argument.
    """
    for k, width in _pieces_of_row(dim.literal_value):
        components = [(k + i) * size.literal_value for i in range(width)]
        columns = [arguments.values(chunk, j, c, LANES).load() for c in components]
        yield k, _untranspose(arguments.builder, columns)


def _offset(context: Any, builder: Any, number: Any, dim: Any) -> Any:
    """Where a row begins in its dat, whose rows have ``dim`` values, a literal."""
    return builder.mul(number, index(context, dim.literal_value))


def _least(builder: Any, one: Any, other: Any) -> Any:
    return builder.select(builder.icmp_unsigned("<", one, other), one, other)


def _view(context: Any, builder: Any, kind: Any, data: Any, count: int, stride: Any) -> Any:
    """An array of ``count`` values at a pointer; ``stride`` counts values, None for 1."""
    return array_of(
        context=context,
        builder=builder,
        kind=kind,
        data=data,
        shape=[index(context, count)],
        stride=stride,
    )


def _pieces_of_row(dim: int, widest: int = LANES) -> list[tuple[int, int]]:
    """A row of ``dim`` values in pieces of ``widest``, ..., 4, 2 and 1 values.

    Returns (first value, width) of each piece.
    """
    pieces = []
    k = 0
    while k < dim:
        width = min(widest, 1 << ((dim - k).bit_length() - 1))
        pieces.append((k, width))
        k += width
    return pieces


def _transpose(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """Four vectors of 4, 2 or 1 values -> 4, 2 or 1 vectors of four values."""

    def mix(x: Any, y: Any, *lanes: int) -> Any:
        mask = ir.Constant(ir.VectorType(_I32, len(lanes)), list(lanes))
        return builder.shuffle_vector(x, y, mask)

    a, b, c, d = rows
    # Join pairs of vectors by shuffles, which stay in registers.
    if a.type.count == 1:
        return [mix(mix(a, b, 0, 1), mix(c, d, 0, 1), 0, 1, 2, 3)]
    if a.type.count == 2:
        ab = mix(a, b, 0, 1, 2, 3)
        cd = mix(c, d, 0, 1, 2, 3)
        return [mix(ab, cd, 0, 2, 4, 6), mix(ab, cd, 1, 3, 5, 7)]
    # Transpose the four 2 x 2 squares, then swap the two off the diagonal.
    even = mix(a, b, 0, 4, 2, 6)
    odd = mix(a, b, 1, 5, 3, 7)
    even2 = mix(c, d, 0, 4, 2, 6)
    odd2 = mix(c, d, 1, 5, 3, 7)
    low = (0, 1, 4, 5)
    high = (2, 3, 6, 7)
    return [
        mix(even, even2, *low),
        mix(odd, odd2, *low),
        mix(even, even2, *high),
        mix(odd, odd2, *high),
    ]


def _untranspose(builder: Any, columns: Sequence[Any]) -> list[Any]:
    """4, 2 or 1 vectors of four values -> four vectors of 4, 2 or 1 values."""
    if len(columns) == LANES:
        return _transpose(builder, columns)
    # One or two columns take a shuffle for each row.
    first = columns[0]
    last = columns[-1]
    kind = ir.VectorType(_I32, len(columns))
    rows = []
    for i in range(LANES):
        mask = ir.Constant(kind, [i, LANES + i][: len(columns)])
        rows.append(builder.shuffle_vector(first, last, mask))
    return rows
