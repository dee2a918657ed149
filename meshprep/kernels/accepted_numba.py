"""What compiling kernels takes of numba and llvmlite beyond what these document."""

from meshprep_runtime.kernel.compiler import check_internals

# By module: names, and names of their attributes.
INTERNALS = {
    "llvmlite.binding": ("ffi.lib._lock._cblist",),
    "numba.core.caching": ("_Cache",),
    "numba.core.cgutils": ("normalize_ir_text",),
    "numba.core.codegen": (
        "CPUCodegen._function_pass_manager",
        "CPUCodegen.magic_tuple",
        "JITCPUCodegen.set_env",
        "JITCodeLibrary._ensure_finalized",
        "JITCodeLibrary._get_module_for_linking",
    ),
    "numba.core.compiler": (
        "CompileResult._find_referenced_environments",
        "CompileResult._rebuild",
        "Compiler._compile_core",
        "DefaultPassBuilder.define_nopython_pipeline",
    ),
    "numba.core.compiler_machinery": ("PassManager.add_pass",),
    "numba.core.event": ("install_listener", "register"),
    "numba.core.runtime": ("rtsys.initialize",),
    "numba.core.typed_passes": ("NopythonRewrites",),
    "numba.core.untyped_passes": (
        "DeadBranchPrune",
        "FindLiterallyCalls",
        "InlineClosureLikes",
        "InlineInlinables",
        "LiteralPropagationSubPipelinePass",
        "LiteralUnroll",
        "WithLifting",
    ),
}


def check_numba() -> None:
    """Raise MissingPackageError, naming the version, where numba lacks one of the internals."""
    check_internals(INTERNALS, "meshprep's kernels")


check_numba()
