"""Reads the form and the address of NumPy arrays in compiled code.

NumPy's protocol for that is the attribute ``__array_struct__``, a capsule with a C
structure. Reading it in compiled code takes a tenth of a microsecond for an array;
``array.ctypes.data`` alone takes ten times as long.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from numba import types

from .._numba.lowering import function_of_c, intrinsic, ir, nothing
from .build import compiled_functions

INT32 = ir.IntType(32)
INT64 = ir.IntType(64)
POINTER = ir.IntType(8).as_pointer()
# ``PyArrayInterface``, as NumPy documents it.
INTERFACE = ir.LiteralStructType(
    [
        INT32,  # always 2
        INT32,  # number of axes
        ir.IntType(8),  # letter of the dtype
        INT32,  # bytes of a value
        INT32,  # flags: contiguous, aligned, writable, in the byte order of this machine
        INT64,  # address of the shape
        INT64,  # address of the strides
        INT64,  # address of the values
    ]
)
# The name of the attribute; compiled code gets its address, so that it must stay alive.
ATTRIBUTE = sys.intern("__array_struct__")

# ``hold`` compares arrays with ``facts``, or with ``note`` writes the facts: for each array
# the number of axes, letter, bytes, flags and address, then the shape and the strides.
# Arrays are given by their addresses as Python objects. The interpreter's lock is held,
# since attributes of Python objects are read.
TEXT = """\
def hold(objects, facts, name, note):
    at = 0
    for owner in objects:
        capsule = attribute(owner, name)
        if capsule == 0:
            return False
        axes, letter, size, flags, shape, strides, values = interface(capsule)
        same = True
        for fact in (axes, letter, size, flags, values):
            if note:
                facts[at] = fact
            same = same and facts[at] == fact
            at += 1
        # other axes would be another number of words
        if same:
            for start in (shape, strides):
                for k in range(axes):
                    if note:
                        facts[at] = word(start, k)
                    same = same and facts[at] == word(start, k)
                    at += 1
        give_back(capsule)
        if not same:
            return False
    return True
"""


@functools.cache
def facts_hold() -> Callable[..., bool]:
    """The compiled ``hold(objects, facts, name, note)``."""
    words = types.int64[::1]
    signatures = {"hold": (words, words, types.int64, types.boolean)}
    names = {
        "attribute": attribute,
        "interface": interface,
        "word": word,
        "give_back": give_back,
    }
    return compiled_functions(text=TEXT, signatures=signatures, names=names, nogil=False)[
        "hold"
    ]


@intrinsic
def attribute(typing: Any, owner: Any, name: Any) -> Any:
    """The address of an attribute of a Python object, 0 if it has none.

    It is a new reference, to be released by :func:`give_back`.
    """

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        get = function_of_c(builder, "PyObject_GetAttr", POINTER, POINTER, POINTER)
        clear = function_of_c(builder, "PyErr_Clear", ir.VoidType())
        value = builder.call(get, [builder.inttoptr(arg, POINTER) for arg in args])
        address = builder.ptrtoint(value, INT64)
        with builder.if_then(builder.icmp_unsigned("==", address, INT64(0))):
            builder.call(clear, [])
        return address

    return types.int64(types.int64, types.int64), make


@intrinsic
def interface(typing: Any, capsule: Any) -> Any:
    """The members of the structure in a capsule, without the first."""
    members = range(1, len(INTERFACE.elements))

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        get = function_of_c(builder, "PyCapsule_GetPointer", POINTER, POINTER, POINTER)
        no_name = ir.Constant(POINTER, None)
        address = builder.call(get, [builder.inttoptr(args[0], POINTER), no_name])
        structure = builder.bitcast(address, INTERFACE.as_pointer())
        values = ir.ArrayType(INT64, len(members))(ir.Undefined)
        for place, member in enumerate(members):
            pointer = builder.gep(structure, [INT32(0), INT32(member)], inbounds=True)
            value = builder.zext(builder.load(pointer), INT64)
            values = builder.insert_value(values, value, place)
        return values

    return types.UniTuple(types.int64, len(members))(types.int64), make


@intrinsic
def word(typing: Any, start: Any, at: Any) -> Any:
    """The word ``at`` words behind an address."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        words = builder.inttoptr(args[0], INT64.as_pointer())
        return builder.load(builder.gep(words, [args[1]], inbounds=True))

    return types.int64(types.int64, types.int64), make


@intrinsic
def give_back(typing: Any, owned: Any) -> Any:
    """Release a reference of :func:`attribute`."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        release = function_of_c(builder, "Py_DecRef", ir.VoidType(), POINTER)
        builder.call(release, [builder.inttoptr(args[0], POINTER)])
        return nothing(context)

    return types.void(types.int64), make
