"""How numba compiles kernels and helpers: by fewer passes, and each helper once.

A helper, or a function that numba brings, such as np.empty, is left as LLVM's code. The kernel
links all that it calls, each part once, and only the whole is optimised and made machine code.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import llvmlite.binding as llvm
from numba.core import cgutils, codegen, compiler, compiler_machinery, typed_passes, untyped_passes

UNUSED_PASSES = (
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    untyped_passes.LiteralPropagationSubPipelinePass,
    typed_passes.NopythonRewrites,
)


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
