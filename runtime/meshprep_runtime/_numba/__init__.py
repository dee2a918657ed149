"""The doors into numba: all that meshprep takes from it beyond its public interface.

numba promises nothing about most of its modules
(https://github.com/numba/numba/issues/5214 collects which of them programs use all the
same). Whoever updates numba, llvmlite or numba-cuda therefore reads this folder and no
other file; ``tests/test_structure.py`` refuses such names anywhere else. Each door says
what it does, why the public way does not suffice, and where numba speaks of it.

=============  =====================================================================
installed      the releases that are tested, settings, the processor
compiling      options of the decorators, machine code on disk, events of the compiler
messages       what numba's errors say, as text
lowering       instructions of LLVM in compiled functions
tuples         tuples of rows that are indexed without jumps
device         numba-cuda: kernels as code for a GPU; loaded only for a GPU
=============  =====================================================================

This module, ``installed``, ``compiling`` and ``messages`` import without numba, which a
process loads when it compiles for the first time.
"""
