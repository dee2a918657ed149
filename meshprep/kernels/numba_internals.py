"""Kernels and helpers compiled by private parts of numba: by fewer passes, each helper once.

Used with the versions of numba that were tried (:data:`compiled.TRIED`), and nowhere else imported.

A helper, or a function that numba brings, such as np.empty, is left as LLVM's code. The kernel
links all that it calls, each part once, and only the whole is optimised and made machine code.
"""

import gc
import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import (
    caching,
    cgutils,
    codegen,
    compiler,
    compiler_machinery,
    config,
    serialize,
    typed_passes,
    types,
    untyped_passes,
)
from numba.core.runtime import rtsys

from meshprep_runtime.kernel.analysis import INNER

from .machine_code import digest, folder, load, save, shipped

# In calls between compiled functions these are taken as 64 bits.
NARROW = (types.int8, types.int16, types.int32, types.uint8, types.uint16, types.uint32)
CHECKED = getattr(config, "BOUNDSCHECK", None)

UNUSED_PASSES = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.NopythonRewrites,
)


def quick_kernel(function: Callable[..., Any]) -> Any:
    """What :func:`compiled.kernel` makes of a function."""
    jit: Any = numba.njit
    made = jit(pipeline_class=KernelCompiler, nogil=True, no_cfunc_wrapper=True)(function)
    made._cache = _Kept(made)
    _take_one_integer(made)
    return made


def quick_helper(function: Callable[..., Any], options: Mapping[str, bool]) -> Any:
    """What :func:`compiled.helper` and :func:`compiled.inlined` make of a function."""
    # an inlined one counts no references to arrays; of what another is not told it takes after
    # its caller
    counts = not options.get("forceinline", False)
    jit: Any = numba.njit
    made = jit(pipeline_class=HelperCompiler, _nrt=counts, **INNER, **options)(function)
    _take_one_integer(made)
    return made


def _take_one_integer(made: Any) -> None:
    """Calls with a number from an array, or with a literal, are no reason to compile again."""
    template = made.get_call_template

    def widened(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        found = template([_wide(a) for a in args], {k: _wide(a) for k, a in kws.items()})
        return (*found[:2], args, kws)

    made.get_call_template = widened


def _wide(argument: Any) -> Any:
    plain = types.unliteral(argument)
    return types.int64 if plain in NARROW else plain


class _Shared(compiler.Compiler):
    """numba's compiler, but what it compiles on the way, such as np.empty, serves all of ours.

    Kernels and helpers have no closures, comprehensions, expressions of whole arrays, or choices
    by type other than of arguments that may be None: passes that look for these are left out.
    """

    def define_pipelines(self) -> list[Any]:
        return [_passes()]

    def _compile_core(self) -> Any:
        self.state.flags = _OwnFlags(self.state.flags)
        return super()._compile_core()


@cache
def _passes() -> Any:
    passes = compiler_machinery.PassManager("meshprep")
    define = compiler.DefaultPassBuilder.define_nopython_pipeline
    for one, words in define(SimpleNamespace(func_ir=None, flags=compiler.Flags())).passes:
        again = one is untyped_passes.DeadBranchPrune and (one, words) in passes.passes
        if one not in UNUSED_PASSES and not again:
            passes.add_pass(one, words)
    passes.finalize()
    return passes


class _OwnFlags(compiler.Flags):
    """Those of one function; by a copy of them numba tells apart what it compiles on the way."""

    def copy(self) -> Any:
        flags: Any = _SharedFlags(self)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.release_gil = flags.forceinline = False
        return _SHARED.setdefault(flags.summary(), flags)


class _SharedFlags(compiler.Flags):
    """One object for equal flags: numba looks them up with every operator that it types."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


_SHARED: dict[str, _SharedFlags] = {}


class KernelCompiler(_Shared):
    """Helpers, and what numba brings, get their environments once they are in machine code.

    Looking for garbage meanwhile takes a tenth of the time, and finds little; timing every call of
    LLVM takes some hundredths.
    """

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        codegen = self.state.targetctx.codegen()
        self.state.library = _KernelLibrary(codegen, func.__qualname__)
        self.state.library.enable_object_caching()
        collecting, timed = gc.isenabled(), llvm.ffi.lib._lock._cblist[:]
        gc.disable()
        llvm.ffi.lib._lock._cblist.clear()
        try:
            with libraries(codegen, partial(_LinkedLibrary, codegen)):
                made = super().compile_extra(func)
        finally:
            llvm.ffi.lib._lock._cblist.extend(timed)
            if collecting:
                gc.enable()
        for environment in made._find_referenced_environments():
            made.library.codegen.set_env(environment.env_name, environment)
        return made


class HelperCompiler(_Shared):
    """Compiles to code that can be linked, and no further."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        self.state.library = _LinkedLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


@contextmanager
def libraries(codegen: Any, create: Callable[[str], Any]) -> Iterator[None]:
    """What numba compiles meanwhile goes into libraries that this makes."""
    before = codegen.create_library
    codegen.create_library = create
    try:
        yield
    finally:
        codegen.create_library = before


class _ModuleLibrary(codegen.JITCodeLibrary):
    """As numba's, but nothing is built to optimise functions that are only declared."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._external: list[str] = []

    def add_ir_module(self, ir_module: Any) -> None:
        defined = [f for f in ir_module.functions if not f.is_declaration]
        self._external += [f.name for f in defined if not f.linkage]
        module = llvm.parse_assembly(cgutils.normalize_ir_text(str(ir_module)))
        module.name, module.data_layout = ir_module.name, self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in defined:
            passes.run(module.get_function(function.name), builder)
        self._final_module.link_in(module)


class _KernelLibrary(_ModuleLibrary):
    """A kernel's code, with that of all that it calls. Each part is linked once."""

    def finalize(self) -> None:
        for part in _parts(self):
            self._final_module.link_in(part, preserve=True)
        self._linking_libraries = []
        super().finalize()


class _LinkedLibrary(_ModuleLibrary):
    """The code of a helper, or of what numba brings, such as np.empty.

    It is optimised and made machine code of where it is linked into. Otherwise it would go through
    both once by itself and again with every caller.
    """

    def finalize(self) -> None:
        for name in self._external:
            self._final_module.get_function(name).linkage = "linkonce_odr"
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Complete, for others than kernels."""
        module = self._final_module.clone()
        for part in _parts(self):
            module.link_in(part, preserve=True)
        return module

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    @property
    def codegen(self) -> Any:
        return _Nowhere()


def _parts(library: Any) -> list[Any]:
    """The modules of all that a library calls, each once."""
    waiting, seen = list(library._linking_libraries), {library}
    found = []
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            one._ensure_finalized()
            library._reload_init.update(one._reload_init)
            linked = isinstance(one, _LinkedLibrary)
            found.append(one._final_module if linked else one._get_module_for_linking())
            waiting += one._linking_libraries if linked else ()
    return found


class _Nowhere:
    """What a helper has in place of the engine that holds machine code."""

    def set_env(self, env_name: str, env: Any) -> None:
        """Left to the kernel."""


class _Kept(caching._Cache):
    """The machine code of one kernel on disk, one file for all that it depends on."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher

    @property
    def cache_path(self) -> str:
        return str(folder())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for these types, None where there is none."""
        # what numba would load here, for half a second, serves compiling alone
        rtsys.initialize(target_context)
        triple, *own = target_context.codegen().magic_tuple()
        came = shipped()
        family = "" if came is None else self._name(sig, (triple, came.family, ""))
        for content in load(self._name(sig, (triple, *own)), family):
            # what was compiled may name modules that have moved since
            with suppress(pickle.UnpicklingError, EOFError, ImportError, AttributeError):
                return _rebuilt(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep it for other processes."""
        if folder() is not None and not data.library.has_dynamic_globals:
            name = self._name(sig, data.codegen.magic_tuple())
            # the annotated source is long, and nobody reads it
            save(name, serialize.dumps(data._replace(type_annotation="")._reduce()))

    def _name(self, sig: Any, target: tuple[str, ...]) -> str:
        function = self._dispatcher.py_func
        parts = (digest(function), _describe(sig), target, CHECKED)
        name = hashlib.sha256(repr(parts).encode()).hexdigest()
        return f"{function.__module__}.{function.__qualname__}-{name[:32]}.nbc"

    def enable(self) -> None:
        """Always enabled."""

    def disable(self) -> None:
        """Always enabled."""

    def flush(self) -> None:
        """Nothing is kept in memory."""


def _rebuilt(target_context: Any, stored: Any, function: Any, *others: Any) -> Any:
    """A kernel from its file.

    Its bitcode, half of the time that this would take, is read where a kernel that calls it is
    compiled.
    """
    name, kind, (code, bitcode) = stored
    own = target_context.codegen()
    own._engine._defined_symbols |= {function.llvm_func_name, function.llvm_cpython_wrapper_name}
    bare = name, kind, (code, _no_bitcode())
    # while another kernel is compiled, this one would be taken for a helper
    with libraries(own, partial(codegen.JITCodeLibrary, own)):
        made = compiler.CompileResult._rebuild(target_context, bare, function, *others)
    made.library._get_module_for_linking = cache(partial(llvm.parse_bitcode, bitcode))
    return made


@cache
def _no_bitcode() -> bytes:
    """A module without functions."""
    return bytes(llvm.parse_assembly("").as_bitcode())


def _describe(arguments: Iterable[Any]) -> tuple[object, ...]:
    """The types of a call in words; named tuples with their fields, whose order counts."""
    found: list[object] = []
    for one in arguments:
        inner = _describe(getattr(one, "types", ()))
        found.append((str(one), getattr(one, "fields", ()), inner))
    return tuple(found)
