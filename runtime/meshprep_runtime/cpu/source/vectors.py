"""Rows between dats and chunks: numba intrinsics made of LLVM vectors.

A *chunk* is a short array on the stack that holds one argument of several elements, component by
component, so that LLVM vectorises the kernel over the elements. LLVM does not find the way
between rows and chunks itself (it makes gathers, or shuffles of whole tables, both slower than
no chunks at all), so four rows at a time are transposed here by hand.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

LANES = 4
# Bytes of a line of a cache.
LINE = 64
_I32 = ir.IntType(32)
_FOUR = types.UniTuple(types.uintp, LANES)


@intrinsic(prefer_literal=True)
def stack(typing: Any, like: Any, count: Any) -> Any:
    """Array of ``count`` (literal) values of the dtype of ``like``, uninitialised, on the stack."""
    array = types.Array(like.dtype, 1, "C")

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        value = context.get_data_type(like.dtype)
        place = cgutils.alloca_once(builder, ir.ArrayType(value, count.literal_value))
        place.align = 64
        data = builder.bitcast(place, value.as_pointer())
        return _view(context, builder, array, data, count.literal_value, None)

    return array(like, count), make


@intrinsic(prefer_literal=True)
def row(typing: Any, base: Any, offset: Any, dim: Any, only_read: Any) -> Any:
    """``base[offset : offset + dim]`` without checks; dim and only_read are literals."""
    array = types.Array(base.dtype, 1, "C", readonly=bool(only_read.literal_value))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _at(context, builder, signature.args[0], args[0], args[1])
        return _view(context, builder, array, data, dim.literal_value, None)

    return array(base, types.uintp, dim, only_read), make


@intrinsic(prefer_literal=True)
def spread(typing: Any, base: Any, offset: Any, dim: Any, stride: Any, only_read: Any) -> Any:
    """``base[offset :: stride][:dim]`` without checks; dim and only_read are literals."""
    array = types.Array(base.dtype, 1, "A", readonly=bool(only_read.literal_value))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = _at(context, builder, signature.args[0], args[0], args[1])
        return _view(context, builder, array, data, dim.literal_value, args[3])

    return array(base, types.uintp, dim, types.uintp, only_read), make


@intrinsic(prefer_literal=True)
def fetch(typing: Any, base: Any, offset: Any, dim: Any, writes: Any) -> Any:
    """Prefetch ``base[offset : offset + dim]`` to read or write; dim and writes are literals."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        data = _at(context, builder, kind, args[0], args[1])
        pointer = builder.bitcast(data, ir.IntType(8).as_pointer())
        shape = ir.FunctionType(ir.VoidType(), [pointer.type, _I32, _I32, _I32])
        ask = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), shape)
        flags = [ir.Constant(_I32, v) for v in (writes.literal_value, 3, 1)]
        nbytes = dim.literal_value * kind.dtype.bitwidth // 8
        for start in range(0, nbytes, LINE):
            builder.call(ask, [builder.gep(pointer, [ir.Constant(_I32, start)]), *flags])
        return context.get_dummy_value()

    return types.void(base, types.uintp, dim, writes), make


@intrinsic(prefer_literal=True)
def load4(typing: Any, chunk: Any, size: Any, j: Any, dat: Any, offsets: Any, dim: Any) -> Any:
    """Four rows of ``dim`` values, at these offsets of a dat, into a chunk at element ``j``."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        for k, width in _pieces(dim.literal_value):
            rows = [
                _Values(context, builder, signature.args[3], args[3], o, k, width).load()
                for o in cgutils.unpack_tuple(builder, args[4])
            ]
            for i, column in enumerate(_transpose(builder, rows)):
                place = (k + i) * size.literal_value
                to = _Values(context, builder, signature.args[0], args[0], args[2], place, LANES)
                to.store(column)
        return context.get_dummy_value()

    return types.void(chunk, size, types.uintp, dat, _FOUR, dim), make


@intrinsic(prefer_literal=True)
def store4(typing: Any, dat: Any, offsets: Any, dim: Any, chunk: Any, size: Any, j: Any) -> Any:
    """Four rows of a chunk, from element ``j``, into a dat."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        offset = cgutils.unpack_tuple(builder, args[1])
        chunk = (signature.args[3], args[3])
        for k, rows in _rows_of_chunk(context, builder, chunk, args[5], dim, size):
            for o, values in zip(offset, rows, strict=True):
                width = values.type.count
                to = _Values(context, builder, signature.args[0], args[0], o, k, width)
                to.store(values)
        return context.get_dummy_value()

    return types.void(dat, _FOUR, dim, chunk, size, types.uintp), make


@intrinsic(prefer_literal=True)
def to_rows(typing: Any, to: Any, chunk: Any, size: Any, j: Any, dim: Any) -> Any:
    """Four rows of a chunk, from element ``j``, one after the other into an array."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = context.get_constant(types.uintp, 0)
        chunk = (signature.args[1], args[1])
        for k, rows in _rows_of_chunk(context, builder, chunk, args[3], dim, size):
            for t, values in enumerate(rows):
                at, width = t * dim.literal_value + k, values.type.count
                place = _Values(context, builder, signature.args[0], args[0], zero, at, width)
                place.store(values)
        return context.get_dummy_value()

    return types.void(to, chunk, size, types.uintp, dim), make


@intrinsic(prefer_literal=True)
def add_row(typing: Any, dat: Any, offset: Any, row: Any, place: Any, dim: Any) -> Any:
    """``dat[offset : offset + dim] += row[place : place + dim]``, which do not overlap."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        plus = builder.fadd if isinstance(dat.dtype, types.Float) else builder.add
        kinds = signature.args
        for k, width in _pieces(dim.literal_value, 2 * LANES):
            to = _Values(context, builder, kinds[0], args[0], args[1], k, width)
            more = _Values(context, builder, kinds[2], args[2], args[3], k, width)
            to.store(plus(to.load(), more.load()))
        return context.get_dummy_value()

    return types.void(dat, types.uintp, row, types.uintp, dim), make


def _rows_of_chunk(
    context: Any, builder: Any, chunk: tuple[Any, Any], j: Any, dim: Any, size: Any
) -> Iterator[tuple[int, list[Any]]]:
    """Pieces of four rows from element ``j``: the first component, and a vector a row."""
    for k, width in _pieces(dim.literal_value):
        places = [(k + i) * size.literal_value for i in range(width)]
        columns = [_Values(context, builder, *chunk, j, p, LANES).load() for p in places]
        yield k, _untranspose(builder, columns)


@intrinsic(prefer_literal=True)
def copy_row(typing: Any, to: Any, place: Any, dat: Any, offset: Any, dim: Any) -> Any:
    """``to[place : place + dim] = dat[offset : offset + dim]``: all is loaded before it is stored.

    In a loop over single values LLVM cannot know that the arrays are apart, and copies one by one.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kinds, pieces = signature.args, _pieces(dim.literal_value)
        rows = [
            _Values(context, builder, kinds[2], args[2], args[3], k, width).load()
            for k, width in pieces
        ]
        for (k, width), row in zip(pieces, rows, strict=True):
            _Values(context, builder, kinds[0], args[0], args[1], k, width).store(row)
        return context.get_dummy_value()

    return types.void(to, types.uintp, dat, types.uintp, dim), make


class _Values:
    """``width`` neighbouring values of an array, from ``offset + shift``."""

    def __init__(
        self, context: Any, builder: Any, kind: Any, array: Any, offset: Any, shift: int, width: int
    ) -> None:
        self.builder = builder
        self.align = kind.dtype.bitwidth // 8
        shifted = builder.add(offset, context.get_constant(types.uintp, shift))
        vector = ir.VectorType(context.get_data_type(kind.dtype), width)
        data = _at(context, builder, kind, array, shifted)
        self.pointer = builder.bitcast(data, vector.as_pointer())

    def load(self) -> Any:
        value = self.builder.load(self.pointer)
        value.align = self.align
        return value

    def store(self, value: Any) -> None:
        self.builder.store(value, self.pointer).align = self.align


def _at(context: Any, builder: Any, kind: Any, array: Any, offset: Any) -> Any:
    data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.gep(data, [offset], inbounds=True)


def _view(context: Any, builder: Any, kind: Any, data: Any, count: int, stride: Any) -> Any:
    size = context.get_constant(
        types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype))
    )
    view = cgutils.create_struct_proxy(kind)(context, builder)
    populate_array(
        view,
        data=data,
        shape=[context.get_constant(types.intp, count)],
        strides=[size if stride is None else builder.mul(size, stride)],
        itemsize=size,
        meminfo=None,
        parent=None,
    )
    return view._getvalue()


def _pieces(dim: int, widest: int = LANES) -> list[tuple[int, int]]:
    """A row of ``dim`` values in pieces of ``widest``, ... 4, 2 and 1: (first value, width)."""
    pieces, k = [], 0
    while k < dim:
        width = min(widest, 1 << ((dim - k).bit_length() - 1))
        pieces.append((k, width))
        k += width
    return pieces


def _transpose(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """Four vectors of 4, 2 or 1 values -> as many vectors of four."""

    def mix(x: Any, y: Any, *places: int) -> Any:
        mask = ir.Constant(ir.VectorType(_I32, len(places)), list(places))
        return builder.shuffle_vector(x, y, mask)

    a, b, c, d = rows
    if a.type.count == 1:
        return [mix(mix(a, b, 0, 1), mix(c, d, 0, 1), 0, 1, 2, 3)]
    if a.type.count == 2:
        ab, cd = mix(a, b, 0, 1, 2, 3), mix(c, d, 0, 1, 2, 3)
        return [mix(ab, cd, 0, 2, 4, 6), mix(ab, cd, 1, 3, 5, 7)]
    even, odd = mix(a, b, 0, 4, 2, 6), mix(a, b, 1, 5, 3, 7)
    even2, odd2 = mix(c, d, 0, 4, 2, 6), mix(c, d, 1, 5, 3, 7)
    low, high = (0, 1, 4, 5), (2, 3, 6, 7)
    halves = ((even, even2), (odd, odd2))
    return [mix(x, y, *half) for half in (low, high) for x, y in halves]


def _untranspose(builder: Any, columns: Sequence[Any]) -> list[Any]:
    """4, 2 or 1 vectors of four -> four vectors of as many values."""
    if len(columns) == LANES:
        return _transpose(builder, columns)
    first, last = columns[0], columns[-1]
    kind = ir.VectorType(_I32, len(columns))
    return [
        builder.shuffle_vector(first, last, ir.Constant(kind, [i, LANES + i][: len(columns)]))
        for i in range(LANES)
    ]
