"""Instructions of LLVM in compiled functions: what intrinsics of loops are made of.

numba compiles Python; it has no atomic operations
(https://github.com/numba/numba/issues/2988), no prefetching
(https://github.com/numba/numba/issues/3769), no vectors, and no arrays on the stack
(https://github.com/numba/numba/issues/5084). An *intrinsic* has them: a function that
compiled code calls and whose instructions Python writes. The decorator is documented
(https://numba.readthedocs.io/en/0.62.0/extending/high-level.html), and so are llvmlite's
instructions. What is not is here: the ``context``, which knows how values of a type lie in
memory, and the structure of an array. Intrinsics elsewhere hand ``context`` and ``builder``
on to these functions, and use of ``builder`` only what llvmlite documents.

The compiler's modules are loaded when this one is.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

__all__ = [
    "HOST",
    "array_of",
    "call_and_ask",
    "call_type",
    "function_of_c",
    "index",
    "index_from",
    "intrinsic",
    "ir",
    "nothing",
    "packed",
    "pointer_to",
    "row_at_pointer",
    "row_length",
    "stack_memory",
    "unpacked",
    "value_type",
]

# What intrinsics need of a compiler; :mod:`.device` has the same for a GPU.
HOST = SimpleNamespace(
    cgutils=cgutils, types=types, intrinsic=intrinsic, populate_array=populate_array
)


def value_type(context: Any, kind: Any) -> Any:
    """The type of LLVM as which values of a type of numba lie in memory."""
    return context.get_data_type(kind)


def index(context: Any, value: int) -> Any:
    """A constant of the type that indices have (``uintp``)."""
    return context.get_constant(types.uintp, value)


def index_from(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """A value of a type of integers of at most 64 bits, as an index."""
    wide = value_type(context, types.uintp)
    if value.type.width == wide.width:
        return value
    if kind.signed:
        return builder.sext(value, wide)
    return builder.zext(value, wide)


def nothing(context: Any) -> Any:
    """The value of an intrinsic that returns none."""
    return context.get_dummy_value()


def stack_memory(builder: Any, kind: Any, count: int, alignment: int) -> Any:
    """A pointer to ``count`` values of a type of LLVM on the stack of the function.

    The memory is taken where the function begins, so that a loop around the intrinsic
    takes it once.
    """
    memory = cgutils.alloca_once(builder, ir.ArrayType(kind, count))
    memory.align = alignment
    return builder.bitcast(memory, kind.as_pointer())


def pointer_to(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    """A pointer to ``array[place]``, without checks; the array may be a pointer itself.

    Compiled code cannot take the address of a value:
    https://github.com/numba/numba/issues/7399
    """
    data = array
    if isinstance(kind, types.Array):
        data = cgutils.create_struct_proxy(kind)(context, builder, array).data
    return builder.gep(data, [place], inbounds=True)


def row_length(context: Any, builder: Any, kind: Any, table: Any) -> Any:
    """The number of columns of an array of two axes in C's order."""
    assert kind.ndim == 2
    assert kind.layout == "C"
    shape = cgutils.create_struct_proxy(kind)(context, builder, table).shape
    return builder.extract_value(shape, 1)


def array_of(
    context: Any,
    builder: Any,
    kind: Any,
    data: Any,
    shape: Sequence[Any],
    stride: Any = None,
    tools: SimpleNamespace = HOST,
) -> Any:
    """An array of a type of numba, of values that lie at a pointer.

    ``shape`` are lengths in LLVM's values. ``stride`` counts values of an array of one
    axis; None for neighbouring values in C's order. ``numba.carray`` makes arrays without
    strides that can be written to, and takes no address that is a number
    (https://github.com/numba/numba/issues/9064). No reference is counted: whoever owns the
    memory must outlive the array.
    """
    # Compute the strides in bytes: of dense rows, or of one axis with a given stride.
    nbytes = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    size = context.get_constant(tools.types.intp, nbytes)
    if stride is None:
        strides = [size]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
    else:
        strides = [builder.mul(size, stride)]
    # Fill numba's structure of an array that owns no memory.
    view = tools.cgutils.create_struct_proxy(kind)(context, builder)
    tools.populate_array(
        view,
        data=data,
        shape=shape,
        strides=strides,
        itemsize=size,
        meminfo=None,
        parent=None,
    )
    return view._getvalue()


def row_at_pointer(tools: SimpleNamespace, dim: int, only_read: bool) -> Any:
    """An intrinsic that makes an array of ``dim`` values from a pointer."""

    def row(typing: Any, base: Any) -> Any:
        # The type of the array, and the code that makes it where the kernel is inlined.
        array = tools.types.Array(base.dtype, 1, "C", readonly=only_read)

        def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            shape = [context.get_constant(tools.types.intp, dim)]
            return array_of(
                context=context,
                builder=builder,
                kind=array,
                data=args[0],
                shape=shape,
                tools=tools,
            )

        return array(base), make

    return tools.intrinsic(row)


def unpacked(builder: Any, values: Any, count: int) -> list[Any]:
    """The values of a tuple, which LLVM has as a structure or an array."""
    return [builder.extract_value(values, i) for i in range(count)]


def packed(context: Any, builder: Any, kind: Any, values: Sequence[Any]) -> Any:
    """A tuple of values of one type; ``kind`` is the type of the tuple."""
    whole = ir.Constant(value_type(context, kind), ir.Undefined)
    for i, value in enumerate(values):
        whole = builder.insert_value(whole, value, i)
    return whole


def function_of_c(builder: Any, name: str, result: Any, *parameters: Any) -> Any:
    """A function of C, of the process or of Python, declared once in a module of LLVM.

    numba calls functions of C by their addresses (``ctypes``), and code with an address in
    it is not kept on disk: https://numba.readthedocs.io/en/0.62.0/developer/caching.html
    """
    try:
        return builder.module.get_global(name)
    except KeyError:
        kind = ir.FunctionType(result, parameters)
        return ir.Function(builder.module, kind, name)


def call_type(typing: Any, function: Any, given: Sequence[Any]) -> Any:
    """The signature with which a compiled function is called with these types."""
    return function.get_call_type(typing, given, {})


def call_and_ask(
    context: Any,
    builder: Any,
    function: Any,
    inner: Any,
    given: Sequence[Any],
    values: Sequence[Any],
) -> Any:
    """Call a compiled function; true where it raises an exception, which is dropped.

    ``inner`` is the :func:`call_type` of the types ``given``. An exception that leaves a
    thread of numba is lost (https://github.com/numba/numba/issues/2811), and the thread
    does not do the rest of its work; ``try`` in compiled code slows loops down
    (https://github.com/numba/numba/issues/8178).
    """
    # Link the function into the caller, and call it without passing its exception on.
    compiled = function.dispatcher.overloads[tuple(inner.args)]
    context.active_code_library.add_linking_library(compiled.library)
    cast = [
        context.cast(builder, value, kind, wanted)
        for value, kind, wanted in zip(values, given, inner.args, strict=True)
    ]
    status, _ = context.call_internal_no_propagate(builder, compiled.fndesc, inner, cast)
    return status.is_error
