"""From the text of a chain and its kernels to machine code, kept on disk where it can be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numba
from numpy.typing import NDArray

from ...cpu.build import names_in_texts
from ...kernel import cache
from ...kernel.analysis import INNER, fresh, reach, stable


@dataclass(frozen=True)
class ElementFunction:
    """One ``elements_N`` of the text, and its kernel."""

    kernel: Callable[..., None]
    text: str
    fastmath: bool
    single: bool


def build_chain(
    functions: Sequence[ElementFunction], text: str, arrays: Sequence[NDArray[Any]]
) -> Callable[..., None]:
    """The compiled ``run(thread, taken, *arrays)``; it checks nothing."""
    signature = (numba.int64, numba.int64[::1], *(numba.typeof(a) for a in arrays))
    whole = "\n\n".join([*(f.text for f in functions), text])
    reached = tuple(reach(f.kernel) for f in functions)
    known = stable(reached)
    kept = None
    if known is not None:
        options = tuple((f.fastmath, f.single) for f in functions)
        name = cache.name_of(("chain", known, options, whole, cache.describe_types(signature)))
        kept = cache.module(name, whole)
    try:
        return _compile(functions, whole, kept, signature)
    except Exception as error:
        if kept is None or isinstance(error, numba.errors.NumbaError):
            raise
        # What lies on disk is of no use: it went away, is full, or was cut off.
        cache.forget(kept)
        return _compile(functions, whole, None, signature)


def _compile(
    functions: Sequence[ElementFunction], text: str, kept: Any, signature: tuple[Any, ...]
) -> Callable[..., None]:
    common: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
    scope: dict[str, Any] = {} if kept is None else vars(kept)
    scope |= names_in_texts()
    module = __name__ if kept is None else kept.__name__
    for i, one in enumerate(functions):

        def compile_one(function: Any, own: dict[str, Any], fast: bool = one.fastmath) -> Any:
            options = common | {"forceinline": True, "fastmath": fast} | own | INNER
            return numba.jit(**options)(function)

        scope[f"kernel_{i}"] = fresh(one.kernel, compile_one, one.single, module)
    exec(compile(text, "<meshprep chain>" if kept is None else kept.__file__, "exec"), scope)
    for i, one in enumerate(functions):
        function = scope[f"elements_{i}"]
        options = common | INNER | {"fastmath": one.fastmath}
        scope[f"elements_{i}"] = numba.jit(**options)(function)
    entry: Callable[..., None] = cache.compiled(scope["run"], signature, kept, common)
    return entry
