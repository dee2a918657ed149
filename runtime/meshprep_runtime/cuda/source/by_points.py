"""Staging and commit with a thread a point, which moves all components."""

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
    zero,
)
from .shape import LoopShape


def stage(shape: LoopShape) -> Lines:
    """Values of the block's points, all sets in one loop: first their numbers, then loads."""
    sets = sorted(shape.shared_rows)
    if not sets:
        return []
    most = f"many{sets[0]}"
    for s in sets[1:]:
        most = f"max(many{s}, {most})"
    stages = [[line for s in sets for line in part(shape, s)] for part in (_numbers, _load, _keep)]
    return [
        f"const int most = {most};",
        *over_points(shape, "most"),
        *indent([line for stage in stages for line in stage]),
        "}",
        "MP_BARRIER();",
    ]


def commit(shape: LoopShape) -> Lines:
    """What the block has for its points, to global memory."""
    lines = []
    for s, mine in shape.commits.items():
        inside = [f"const Index p = points{s}[from{s} + i];"]
        inside += [line for i in mine if i in shape.gathered for line in _sum(shape, i, s)]
        plain = [line for i in mine for line in _commit_plainly(shape, i)]
        shared = [line for i in mine for line in _commit_atomically(shape, i)]
        inside += by_role(shape, s, plain, shared)
        lines += [*over_points(shape, f"many{s}"), *indent(inside), "}"]
    return lines


def _guarded(shape: LoopShape, i: int) -> bool:
    """True for what other blocks may be writing while this one stages it."""
    return shape.roles and i in shape.committed and i not in shape.summed


def _numbers(shape: LoopShape, s: int) -> Lines:
    """A set's point, and whether the block writes it; who has none asks for the last one again."""
    if all(i in shape.summed for i in shape.shared_rows[s].offset):
        return []
    i = f"min(i, many{s} - 1)" if len(shape.shared_rows) > 1 else "i"
    lines = [f"const Index q{s} = points{s}[from{s} + {i}];"]
    has_role = any(_guarded(shape, k) for k in shape.shared_rows[s].offset)
    return lines + [f"const int is{s} = role{s}[from{s} + {i}];"] * has_role


def _load(shape: LoopShape, s: int) -> Lines:
    """Its values; sums begin at the zero that changes nothing it is added to."""
    lines: Lines = []
    own: Lines = []
    for i in shape.shared_rows[s].offset:
        if i in shape.summed:
            zeros = ", ".join([zero(shape, i)] * shape.slots[i].dim)
            lines.append(f"const {shape.c_type(i)} v{i}[] = {{{zeros}}};")
            continue
        found = from_global(shape, shape.rows_to(i)[0], f"q{s}", f"v{i}")
        guarded = _guarded(shape, i)
        start = " = {}" if guarded else ""
        lines.append(f"{shape.c_type(i)} v{i}[{shape.slots[i].dim}]{start};")
        (own if guarded else lines).extend(found)
    # What another block may be writing is left alone.
    return lines + ([f"if (is{s} == 1) {{", *indent(own), "}"] if own else [])


def _keep(shape: LoopShape, s: int) -> Lines:
    row = shape.shared_rows[s]
    kept = [line for i in row.offset for line in to_shared(shape, i, "i", f"v{i}")]
    return [f"if (i < many{s}) {{", *indent(kept), "}"] if len(shape.shared_rows) > 1 else kept


def _sum(shape: LoopShape, i: int, s: int) -> Lines:
    """What the threads of the block left for one point."""
    dim, many = shape.slots[i].dim, adding(shape, i)
    # Offsets count from the block's first place, and each block has one more of them than points.
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
    """What elements wrote in turn is stored, sums are added."""
    row = shape.rows_to(i)[0]
    if i in shape.gathered:
        return add_to_global(shape, row, "p", [f"t{i}[{k}]" for k in range(row.dim)])
    kept = _kept(shape, i)
    if i in shape.summed:
        return [*kept, *add_to_global(shape, row, "p", [f"v{i}[{k}]" for k in range(row.dim)])]
    return [*kept, *to_global(shape, row, "p", f"v{i}")]


def _commit_atomically(shape: LoopShape, i: int) -> Lines:
    row = shape.rows_to(i)[0]
    if i in shape.gathered:
        return add_atomically(shape, row, "p", f"t{i}")
    return [*_kept(shape, i), *add_atomically(shape, row, "p", f"v{i}")]


def _kept(shape: LoopShape, i: int) -> Lines:
    """What a block has for its point ``i``."""
    return [
        f"{shape.c_type(i)} v{i}[{shape.slots[i].dim}];",
        *from_shared(shape, i, "i", f"v{i}"),
    ]
