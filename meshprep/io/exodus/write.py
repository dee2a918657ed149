"""Writing Exodus II files by netCDF4: blocks, sets, and values at all steps."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cell_blocks.file_mesh import FileMesh, SideSet
from .blocks import starts_of_runs
from .read import (
    ATTRIBUTE,
    BLOCK,
    TO_FILE,
    USUAL_TYPE,
    ZERO,
    ExodusNotes,
    cell_type_of,
    stepped,
)

# The names of sets that have a number alone.
NODE_SET = re.compile(r"node set ([1-9]\d*)")
SIDE_SET = re.compile(r"side set ([1-9]\d*)")
# What readers that ask for no length have room for.
_USUAL_BYTES = 32
# The largest number of 32 bits, and what says that numbers have 64: those of blocks and
# sets, and those of nodes and elements.
_MOST = 2**31 - 1
_LONG_IDS = 0x0800
_LONG_MAPS = 0x0400


@dataclass(frozen=True)
class _Run:
    """An element block of the file: rows of a block of cells, and its number."""

    k: int
    rows: slice
    number: int
    type: str

    @property
    def size(self) -> int:
        return self.rows.stop - self.rows.start


def write(mesh: FileMesh, path: Path) -> None:
    """Write a mesh with cell data ``exodus:block`` as :func:`~.blocks.blocks` has them.

    Zeros throughout stand for a block each, counted from 1. Numbers of sets are those of
    their attributes.
    """
    import netCDF4

    notes: ExodusNotes = mesh.about_exodus or ExodusNotes()
    runs = list(_runs_of_blocks(mesh, notes))
    with netCDF4.Dataset(path, "w") as file:
        file.set_auto_mask(False)
        _write_head(file=file, mesh=mesh, runs=runs, notes=notes)
        axes = "xyz"[: mesh.points.shape[1]]
        _write_name_rows(file=file, key="coor_names", dimension="num_dim", names=list(axes))
        for axis, values in zip(axes, mesh.points.T, strict=True):
            file.createVariable(f"coord{axis}", "f8", ("num_nodes",))[:] = values
        # numbers of nodes and of elements, which are then no values any more
        nodes, elements = mesh.take_numbers()
        if nodes is not None:
            _write_map(file=file, key="node_num_map", dimension="num_nodes", numbers=nodes)
        if elements is not None:
            _write_map(
                file=file,
                key="elem_num_map",
                dimension="num_elem",
                numbers=np.concatenate(elements),
            )
        _write_blocks(file=file, mesh=mesh, runs=runs, notes=notes)
        _write_node_values(file, mesh)
        _write_element_values(
            file=file, mesh=mesh, runs=runs, n_blocks=len(runs) + len(notes.empty)
        )
        _write_attributes(file, mesh, runs)
        _write_global_values(file, mesh.whole_steps)
        # Sets stand last, those that nothing is in behind the others of their kind.
        _write_node_sets(file, mesh, notes.empty_sets.get("ns", {}))
        _write_side_sets(file, mesh.side_sets, notes.empty_sets.get("ss", {}))


def _runs_of_blocks(mesh: FileMesh, notes: ExodusNotes) -> Iterator[_Run]:
    """The element blocks, in the order of the cells."""
    for k, (cells, ids) in enumerate(zip(mesh.cells, mesh.cell_data[BLOCK], strict=True)):
        # Keep the element type of the file that was read, such as SHELL4 for quads, if it
        # still fits the number of nodes.
        start = starts_of_runs(ids).tolist()
        for a, b in zip(start, [*start[1:], len(cells.data)], strict=True):
            number = int(ids[a]) or k + 1
            elem_type = notes.types.get(number, "")
            if cell_type_of(elem_type, cells.data.shape[1]) != cells.type:
                elem_type = USUAL_TYPE[cells.type]
            yield _Run(k=k, rows=slice(a, b), number=number, type=elem_type)


def _write_head(
    file: Any, mesh: FileMesh, runs: Sequence[_Run], notes: ExodusNotes
) -> None:
    # Find the longest of all names: its length is a dimension.
    names = [*mesh.point_data, *mesh.cell_data, *mesh.point_sets, *mesh.side_sets]
    names += [*mesh.group_names.get(BLOCK, {}).values(), *notes.empty.values()]
    names += mesh.whole_steps
    for empty in notes.empty_sets.values():
        names += empty.values()
    of_sets = [*mesh.set_attrs.values(), *(s.attrs for s in mesh.side_sets.values())]
    for attrs in of_sets:
        names += [attrs.get("title", ""), *attrs.get("values", {})]
    longest = max(_USUAL_BYTES, *(len(name.encode()) for name in names))
    # State the version, the bytes of a real number, and by file_size 1 the large model,
    # in which each coordinate and each result has a variable of its own.
    file.title = notes.title or "written by meshprep"
    file.api_version = file.version = np.float32(7.06)
    file.floating_point_word_size = np.int32(8)
    file.file_size = np.int32(1)
    # Declare ids of 64 bits only where one needs them: older libraries know 32 alone.
    numbers = [run.number for run in runs] + [attrs.get("number", 0) for attrs in of_sets]
    for empty in (notes.empty, *notes.empty_sets.values()):
        numbers += empty
    is_long = max(numbers) > _MOST
    file.int64_status = np.int32(_LONG_IDS if is_long else 0)
    file.maximum_name_length = np.int32(longest)
    # Declare the dimensions, which are the sizes of all that follows; time_step is the one
    # without a limit. Texts have a last byte for the zero that ends them.
    sizes = {
        "len_string": _USUAL_BYTES + 1,
        "len_name": longest + 1,
        "len_line": 81,
        "four": 4,
    }
    for key, dimensions in _RECORDS.items():
        if key in notes.records:
            sizes |= dict(zip(dimensions, notes.records[key].shape, strict=True))
    file.createDimension("time_step", None)
    sizes |= {"num_dim": mesh.points.shape[1], "num_nodes": len(mesh.points)}
    sizes |= {"num_elem": sum(len(c.data) for c in mesh.cells)}
    sizes |= {"num_el_blk": len(runs) + len(notes.empty)}
    for name, size in sizes.items():
        file.createDimension(name, size)
    for key, dimensions in _RECORDS.items():
        if key in notes.records:
            file.createVariable(key, "S1", dimensions)[:] = notes.records[key]
    file.createVariable("time_whole", "f8", ("time_step",))[:] = mesh.times


# The variables that hold text about the file, and their dimensions.
_RECORDS = {
    "qa_records": ("num_qa_rec", "four", "len_string"),
    "info_records": ("num_info", "len_line"),
}


def _write_name_rows(file: Any, key: str, dimension: str, names: Sequence[str]) -> None:
    letters = np.zeros((len(names), len(file.dimensions["len_name"])), dtype="S1")
    for row, name in zip(letters, (n.encode() for n in names), strict=True):
        row[: len(name)] = np.frombuffer(name, "S1")
    file.createVariable(key, "S1", (dimension, "len_name"))[:] = letters


def _write_numbers(file: Any, key: str, dimension: str, numbers: Sequence[int]) -> None:
    """The numbers of blocks or sets; they have 64 bits where one does not fit into 32."""
    in_file = [0 if number == ZERO else number for number in numbers]
    kind = "i8" if max(in_file) > _MOST else "i4"
    variable = file.createVariable(key, kind, (dimension,))
    variable.setncattr("name", "ID")
    variable[:] = in_file


def _write_map(file: Any, key: str, dimension: str, numbers: NDArray[Any]) -> None:
    """The numbers of nodes or elements, as 64 bits where one does not fit into 32."""
    is_long = bool((numbers > _MOST).any())
    file.createVariable(key, "i8" if is_long else "i4", (dimension,))[:] = numbers
    if is_long:
        file.int64_status = np.int32(file.int64_status | _LONG_MAPS)


def _write_blocks(
    file: Any, mesh: FileMesh, runs: Sequence[_Run], notes: ExodusNotes
) -> None:
    """The blocks that have elements, and behind them those that have none."""
    names = mesh.group_names.get(BLOCK, {})
    # A block without elements has status 0, a number and a name, and no connectivity.
    status = [1] * len(runs) + [0] * len(notes.empty)
    file.createVariable("eb_status", "i4", ("num_el_blk",))[:] = status
    numbers = [run.number for run in runs] + list(notes.empty)
    _write_numbers(file=file, key="eb_prop1", dimension="num_el_blk", numbers=numbers)
    titles = [names.get(run.number, "") for run in runs] + list(notes.empty.values())
    _write_name_rows(file=file, key="eb_names", dimension="num_el_blk", names=titles)
    for i, run in enumerate(runs, 1):
        cells = mesh.cells[run.k]
        nodes = cells.data[run.rows]
        if cells.type in TO_FILE:
            nodes = nodes[:, TO_FILE[cells.type]]
        file.createDimension(f"num_el_in_blk{i}", len(nodes))
        file.createDimension(f"num_nod_per_el{i}", nodes.shape[1])
        # Count nodes from 1; the element type is an attribute of the connectivity.
        variable = file.createVariable(
            f"connect{i}", "i4", (f"num_el_in_blk{i}", f"num_nod_per_el{i}")
        )
        variable.elem_type = run.type
        variable[:] = nodes + 1


def _at_steps(name: str, data: Mapping[str, Any], steps: int) -> list[Any]:
    """The values at each time step, None where there are none.

    Those that are given once are the same at all steps, such as numbers of elements.
    """
    if not any(stepped(name, step) in data for step in range(1, steps)):
        return [data[name]] * steps
    return [data.get(stepped(name, step)) for step in range(steps)]


def _write_at_steps(file: Any, key: str, dimension: str, values: Sequence[Any]) -> None:
    variable = file.createVariable(key, "f8", ("time_step", dimension))
    for step, values_of_step in enumerate(values):
        variable[step] = np.nan if values_of_step is None else values_of_step


def _plain_names(data: Mapping[str, Any]) -> list[str]:
    """The names of values, without their steps, each once."""
    return list(dict.fromkeys(name.partition("\0")[0] for name in data))


def _write_node_values(file: Any, mesh: FileMesh) -> None:
    names = _plain_names(mesh.point_data)
    if not names:
        return
    file.createDimension("num_nod_var", len(names))
    _write_name_rows(file=file, key="name_nod_var", dimension="num_nod_var", names=names)
    for i, name in enumerate(names, 1):
        values = _at_steps(name, mesh.point_data, len(mesh.times))
        _write_at_steps(
            file=file, key=f"vals_nod_var{i}", dimension="num_nodes", values=values
        )


def _write_element_values(
    file: Any, mesh: FileMesh, runs: Sequence[_Run], n_blocks: int
) -> None:
    """Values of the elements of the blocks that have some: a table says which these are."""
    data = {
        name: values
        for name, values in mesh.cell_data.items()
        if name != BLOCK and not name.startswith(ATTRIBUTE)
    }
    names = _plain_names(data)
    if not names:
        return
    file.createDimension("num_elem_var", len(names))
    _write_name_rows(file=file, key="name_elem_var", dimension="num_elem_var", names=names)
    table = np.zeros((n_blocks, len(names)), np.int32)
    for i, name in enumerate(names):
        # Cut the values of all steps by the blocks of the file.
        by_block = []
        for run in runs:
            values_of_block = {key: values[run.k][run.rows] for key, values in data.items()}
            by_block.append(_at_steps(name, values_of_block, len(mesh.times)))
        # Write nothing for blocks that have NaN alone; the truth table tells readers which
        # blocks have the variable.
        filled = [not _is_all_nan(values) for values in by_block]
        for b, values in enumerate(by_block):
            # values that no block has are written as they are
            if filled[b] or not any(filled):
                table[b, i] = 1
                key = f"vals_elem_var{i + 1}eb{b + 1}"
                _write_at_steps(
                    file=file, key=key, dimension=f"num_el_in_blk{b + 1}", values=values
                )
    file.createVariable("elem_var_tab", "i4", ("num_el_blk", "num_elem_var"))[:] = table


def _is_all_nan(values: Sequence[Any]) -> bool:
    """Whether there is nothing but NaN at all steps."""
    return all(one is None or bool(np.isnan(one).all()) for one in values)


def _write_attributes(file: Any, mesh: FileMesh, runs: Sequence[_Run]) -> None:
    """The attributes of the elements of the blocks that have some."""
    data = {n: values for n, values in mesh.cell_data.items() if n.startswith(ATTRIBUTE)}
    for block_number, run in enumerate(runs, 1):
        columns = {}
        for name, values in data.items():
            values_of_block = values[run.k][run.rows]
            if "\0" not in name and not np.isnan(values_of_block).all():
                columns[name.removeprefix(ATTRIBUTE)] = values_of_block
        if not columns:
            continue
        dimension = f"num_att_in_blk{block_number}"
        file.createDimension(dimension, len(columns))
        variable = file.createVariable(
            f"attrib{block_number}", "f8", (f"num_el_in_blk{block_number}", dimension)
        )
        variable[:] = np.column_stack(list(columns.values()))
        # those without a name have their place
        counted = [str(i) for i in range(1, len(columns) + 1)]
        if list(columns) != counted:
            _write_name_rows(
                file=file,
                key=f"attrib_name{block_number}",
                dimension=dimension,
                names=list(columns),
            )


def _write_global_values(file: Any, values: Mapping[str, NDArray]) -> None:
    if not values:
        return
    file.createDimension("num_glo_var", len(values))
    _write_name_rows(
        file=file, key="name_glo_var", dimension="num_glo_var", names=list(values)
    )
    variable = file.createVariable("vals_glo_var", "f8", ("time_step", "num_glo_var"))
    variable[:] = np.column_stack(list(values.values()))


def _write_node_sets(file: Any, mesh: FileMesh, empty: Mapping[int, str]) -> None:
    sets = mesh.point_sets
    attrs = {name: mesh.set_attrs.get(name, {}) for name in sets}
    _write_set_heads(file=file, kind="ns", sets=attrs, empty=empty, pattern=NODE_SET)
    for i, (name, nodes) in enumerate(sets.items(), 1):
        dimension = f"num_nod_ns{i}"
        file.createDimension(dimension, len(nodes))
        file.createVariable(f"node_ns{i}", "i4", (dimension,))[:] = nodes + 1
        # One distribution factor a node.
        factors = attrs[name].get("factors")
        if factors is not None:
            file.createVariable(f"dist_fact_ns{i}", "f8", (dimension,))[:] = factors
    _write_set_values(file, "ns", attrs)


def _write_side_sets(
    file: Any, sets: Mapping[str, SideSet], empty: Mapping[int, str]
) -> None:
    attrs = {name: side_set.attrs for name, side_set in sets.items()}
    _write_set_heads(file=file, kind="ss", sets=attrs, empty=empty, pattern=SIDE_SET)
    for i, side_set in enumerate(sets.values(), 1):
        dimension = f"num_side_ss{i}"
        file.createDimension(dimension, len(side_set.elements))
        for key, values in (("elem", side_set.elements + 1), ("side", side_set.sides)):
            file.createVariable(f"{key}_ss{i}", "i4", (dimension,))[:] = values
        # one for each node of each side
        factors = side_set.attrs.get("factors")
        if factors is not None and factors.size:
            file.createDimension(f"num_df_ss{i}", factors.size)
            variable = file.createVariable(f"dist_fact_ss{i}", "f8", (f"num_df_ss{i}",))
            variable[:] = factors.ravel()
    _write_set_values(file, "ss", attrs)


# The dimension that counts the sets of a kind.
_COUNT = {"ns": "num_node_sets", "ss": "num_side_sets"}


def _write_set_values(file: Any, kind: str, sets: Mapping[str, Mapping[str, Any]]) -> None:
    """Values of the entries of sets, by the names that some have."""
    unique_names: dict[str, None] = {}
    for attrs in sets.values():
        unique_names |= dict.fromkeys(attrs.get("values", {}))
    names = list(unique_names)
    if not names:
        return
    word = {"ns": "nset", "ss": "sset"}[kind]
    of_set = {"ns": "num_nod_ns", "ss": "num_side_ss"}[kind]
    file.createDimension(f"num_{word}_var", len(names))
    _write_name_rows(
        file=file, key=f"name_{word}_var", dimension=f"num_{word}_var", names=names
    )
    # As with elements, a truth table says which set has which variable.
    table = np.zeros((len(file.dimensions[_COUNT[kind]]), len(names)), np.int32)
    for k, attrs in enumerate(sets.values()):
        for name, values in attrs.get("values", {}).items():
            i = names.index(name)
            table[k, i] = 1
            key = f"vals_{word}_var{i + 1}{kind}{k + 1}"
            variable = file.createVariable(key, "f8", ("time_step", f"{of_set}{k + 1}"))
            variable[:] = values
    dimensions = (_COUNT[kind], f"num_{word}_var")
    file.createVariable(f"{word}_var_tab", "i4", dimensions)[:] = table


def _write_set_heads(
    file: Any,
    kind: str,
    sets: Mapping[str, Mapping[str, Any]],
    empty: Mapping[int, str],
    pattern: re.Pattern[str],
) -> None:
    """Numbers and names of the sets of a kind, those that nothing is in behind the others.

    Those whose names are of the pattern have numbers alone.
    """
    # A name such as "node set 7" is the number alone: such sets have a blank name in the
    # file.
    numbers = _set_numbers(sets, pattern)
    titles = []
    for name, attrs in sets.items():
        title = attrs.get("title", name)
        titles.append("" if pattern.fullmatch(title) else title)
    free = {number: name for number, name in empty.items() if number not in numbers}
    if not numbers and not free:
        return
    dimension = _COUNT[kind]
    file.createDimension(dimension, len(numbers) + len(free))
    status = [1] * len(numbers) + [0] * len(free)
    file.createVariable(f"{kind}_status", "i4", (dimension,))[:] = status
    _write_numbers(
        file=file, key=f"{kind}_prop1", dimension=dimension, numbers=[*numbers, *free]
    )
    _write_name_rows(
        file=file, key=f"{kind}_names", dimension=dimension, names=[*titles, *free.values()]
    )


def _set_numbers(
    sets: Mapping[str, Mapping[str, Any]], pattern: re.Pattern[str]
) -> list[int]:
    """Numbers that the names say or that are given, each once; free ones for the rest."""
    # A name that is a number goes before a number that the set was read with.
    out: dict[str, int] = {}
    for name in sets:
        if found := pattern.fullmatch(name):
            out[name] = int(found[1])
    for name, attrs in sets.items():
        number = attrs.get("number", 0)
        if number > 0 and number not in out.values():
            out.setdefault(name, number)
    free = (i for i in range(1, 2 * len(sets) + 1) if i not in out.values())
    return [out[name] if name in out else next(free) for name in sets]
