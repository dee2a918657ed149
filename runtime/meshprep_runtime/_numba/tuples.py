"""Tuples of rows that compiled code indexes without jumps.

A tuple is a structure, which machine code cannot index. numba jumps to the code of the
index (``switch``): LLVM then neither unrolls a loop over the rows nor computes several
elements at once, and a kernel takes up to 1.5 times as long. A :class:`RowTuple` is a tuple
in all but that: it chooses among its values without a jump, which LLVM leaves out where it
knows the index, as in each turn of a loop that it has unrolled.

The decorators are documented for types of one's own
(https://numba.readthedocs.io/en/0.62.0/extending/low-level.html); ``call_conv``, by which
an index beyond the tuple raises an exception, and ``impl_ret_borrowed``, which counts the
references to arrays that own their memory, are not.
"""

import operator
from typing import Any

from numba import types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic, lower_builtin, models, register_model

from .lowering import ir

__all__ = ["RowTuple", "together"]


class RowTuple(types.UniTuple):
    """The type of a tuple of ``count`` rows, which are arrays of one type."""

    def __init__(self, dtype: Any, count: int) -> None:
        super().__init__(dtype, count)  # type: ignore[no-untyped-call]
        self.name = f"RowTuple({dtype} x {count})"


# It lies in memory as any tuple.
register_model(RowTuple)(models.UniTupleModel)


@intrinsic
def together(typing: Any, rows: Any) -> Any:
    """A tuple of arrays of one type, as a :class:`RowTuple`."""

    def make(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return impl_ret_borrowed(context, builder, signature.return_type, args[0])

    return RowTuple(rows.dtype, rows.count)(rows), make


@lower_builtin(operator.getitem, RowTuple, types.intp)
@lower_builtin(operator.getitem, RowTuple, types.uintp)
def row_at(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """``rows[place]``, where the place is not known when the kernel is compiled."""
    rows, index_given = args
    count = signature.args[0].count

    # Negative places count from the end, as in Python; all others beyond are refused.
    def number(value: int) -> Any:
        return ir.Constant(index_given.type, value)

    is_negative = builder.icmp_signed("<", index_given, number(0))
    from_end = builder.add(index_given, number(count))
    from_begin = builder.select(is_negative, from_end, index_given)
    is_beyond = builder.icmp_unsigned(">=", from_begin, number(count))
    with builder.if_then(is_beyond, likely=False):
        message = ("tuple index out of range",)
        context.call_conv.return_user_exc(builder, IndexError, message)

    # Choose the row.
    chosen = builder.extract_value(rows, 0)
    for i in range(1, count):
        is_here = builder.icmp_unsigned("==", from_begin, number(i))
        chosen = builder.select(is_here, builder.extract_value(rows, i), chosen)
    return impl_ret_borrowed(context, builder, signature.return_type, chosen)
