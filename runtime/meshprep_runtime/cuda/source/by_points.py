"""Staging and commit with a thread for each point, which moves all its components."""

from .rows import (
    Lines,
    add_atomically,
    add_to_global,
    adding,
    by_role,
    from_global,
    from_shared,
    indent,
    over_points,
    to_global,
    to_shared,
    zero_of_sums,
)
from .shape import LoopShape


def stage_points(shape: LoopShape) -> Lines:
    """Stage values of the block's points, all sets in one loop, numbers first."""
    sets = sorted(shape.shared_rows)
    if not sets:
        return []
    most = f"many{sets[0]}"
    for s in sets[1:]:
        most = f"max(many{s}, {most})"
    # First all numbers, then all loads, then all stores: loads that wait for memory
    # overlap.
    inside: Lines = []
    for part in (_number_of_point, _load_point, _store_point_in_shared):
        for s in sets:
            inside += part(shape, s)
    return [
        f"const int most = {most};",
        *over_points(shape, "most"),
        *indent(inside),
        "}",
        "MP_BARRIER();",
    ]


def commit_points(shape: LoopShape) -> Lines:
    """Bring the values that a block has for its points to global memory."""
    lines = []
    for s, committed in shape.commits.items():
        inside = [f"const Index p = points{s}[from{s} + i];"]
        plain: Lines = []
        shared: Lines = []
        for i in committed:
            if i in shape.gathered:
                inside += _sum_of_point(shape, i, s)
            plain += _commit_plainly(shape, i)
            shared += _commit_atomically(shape, i)
        inside += by_role(shape=shape, s=s, plain=plain, shared=shared)
        lines += [*over_points(shape, f"many{s}"), *indent(inside), "}"]
    return lines


def _guarded(shape: LoopShape, i: int) -> bool:
    """True for a dat that other blocks may be writing while this block stages it."""
    return shape.roles and i in shape.committed and i not in shape.summed


def _number_of_point(shape: LoopShape, s: int) -> Lines:
    """The number of a thread's point of a set, and whether the block writes it.

    A thread beyond the points of the set takes the last point again.
    """
    if all(i in shape.summed for i in shape.shared_rows[s].offset):
        return []
    if len(shape.shared_rows) > 1:
        i = f"min(i, many{s} - 1)"
    else:
        i = "i"
    lines = [f"const Index q{s} = points{s}[from{s} + {i}];"]
    if any(_guarded(shape, k) for k in shape.shared_rows[s].offset):
        lines.append(f"const int is{s} = role{s}[from{s} + {i}];")
    return lines


def _load_point(shape: LoopShape, s: int) -> Lines:
    """Load the values of a point; sums start from zero_of_sums."""
    # Sums are added to the global at the end, so they start from zero here.
    lines: Lines = []
    guarded_lines: Lines = []
    for i in shape.shared_rows[s].offset:
        if i in shape.summed:
            zeros = ", ".join([zero_of_sums(shape, i)] * shape.slots[i].dim)
            lines.append(f"const {shape.c_type(i)} v{i}[] = {{{zeros}}};")
            continue
        loads = from_global(
            shape=shape, row=shape.rows_to(i)[0], point=f"q{s}", into=f"v{i}"
        )
        declaration = f"{shape.c_type(i)} v{i}[{shape.slots[i].dim}]"
        if _guarded(shape, i):
            lines.append(f"{declaration} = {{}};")
            guarded_lines += loads
        else:
            lines.append(f"{declaration};")
            lines += loads
    # Values that another block may be writing are not loaded.
    if guarded_lines:
        lines += [f"if (is{s} == 1) {{", *indent(guarded_lines), "}"]
    return lines


def _store_point_in_shared(shape: LoopShape, s: int) -> Lines:
    """Store the values of a point in shared memory."""
    stores: Lines = []
    for i in shape.shared_rows[s].offset:
        stores += to_shared(shape=shape, i=i, point="i", values=f"v{i}")
    if len(shape.shared_rows) > 1:
        return [f"if (i < many{s}) {{", *indent(stores), "}"]
    return stores


def _sum_of_point(shape: LoopShape, i: int, s: int) -> Lines:
    """Sum the increments that the threads of the block left for a point."""
    dim = shape.slots[i].dim
    many = adding(shape, i)
    # Offsets count from the block's first place; a block has one more offset than points.
    return [
        f"{shape.c_type(i)} t{i}[{dim}] = {{}};",
        f"const Index at{i} = from{s} + block + i;",
        f"const int end{i} = gather_offset{i}[at{i} + 1];",
        f"MP_LOOP for (int g = gather_offset{i}[at{i}]; g < end{i}; ++g) {{",
        f"  const int left = gather{i}[begin * {many} + g];",
        *(f"  t{i}[{k}] += h{i}[{k * many} * count + left];" for k in range(dim)),
        "}",
    ]


def _commit_plainly(shape: LoopShape, i: int) -> Lines:
    """Add sums to global memory; store values that elements wrote in turn."""
    row = shape.rows_to(i)[0]
    if i in shape.gathered:
        return add_to_global(
            shape=shape, row=row, point="p", values=[f"t{i}[{k}]" for k in range(row.dim)]
        )
    loads = _load_from_shared(shape, i)
    if i in shape.summed:
        values = [f"v{i}[{k}]" for k in range(row.dim)]
        return [*loads, *add_to_global(shape=shape, row=row, point="p", values=values)]
    return [*loads, *to_global(shape=shape, row=row, point="p", values=f"v{i}")]


def _commit_atomically(shape: LoopShape, i: int) -> Lines:
    """Add sums to global memory by atomics."""
    row = shape.rows_to(i)[0]
    if i in shape.gathered:
        return add_atomically(shape=shape, row=row, point="p", values=f"t{i}")
    return [
        *_load_from_shared(shape, i),
        *add_atomically(shape=shape, row=row, point="p", values=f"v{i}"),
    ]


def _load_from_shared(shape: LoopShape, i: int) -> Lines:
    """Load the values that a block has for its point ``i``."""
    return [
        f"{shape.c_type(i)} v{i}[{shape.slots[i].dim}];",
        *from_shared(shape=shape, i=i, point="i", into=f"v{i}"),
    ]
