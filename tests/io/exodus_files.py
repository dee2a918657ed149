"""Exodus files as other programs write them, and what is in a file whatever its numbers are."""

import netCDF4
import numpy as np

# Nodes of each side, as Exodus numbers them [Sandia report SAND92-2137, table of side sets].
SIDES = {
    "QUAD4": {1: (0, 1), 2: (1, 2), 3: (2, 3), 4: (3, 0)},
    "SHELL4": {
        1: (0, 1, 2, 3),
        2: (0, 3, 2, 1),
        3: (0, 1),
        4: (1, 2),
        5: (2, 3),
        6: (3, 0),
    },
    "TRI3": {1: (0, 1), 2: (1, 2), 3: (2, 0)},
    "TRISHELL3": {1: (0, 1, 2), 2: (0, 2, 1), 3: (0, 1), 4: (1, 2), 5: (2, 0)},
}


def letters(words, width=33):
    """A row of letters for each word."""
    rows = [np.frombuffer(word.encode().ljust(width, b"\0"), "S1") for word in words]
    return np.array(rows).reshape(len(words), width)


class Writer:
    """A file that gets a variable a call; dimensions are made as they are named."""

    def __init__(self, path, kind="NETCDF4"):
        self.file = netCDF4.Dataset(path, "w", format=kind)
        self.file.title = "a plate"
        self.file.api_version = self.file.version = np.float32(7.06)
        self.file.floating_point_word_size = np.int32(8)
        self.file.file_size = np.int32(1)
        self.file.createDimension("time_step", None)
        self.file.createDimension("len_name", 33)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def put(self, variable, values, /, *dimensions, kind=None, **attributes):
        values = np.asarray(values)
        for dimension, size in zip(dimensions, values.shape, strict=True):
            if dimension not in self.file.dimensions:
                self.file.createDimension(dimension, size)
        made = self.file.createVariable(variable, kind or values.dtype, dimensions)
        made[:] = values
        made.setncatts(attributes)

    def names(self, name, dimension, words):
        self.put(name, letters(words), dimension, "len_name")

    def grid(self, n):
        """The nodes of n by n squares in a plane."""
        x, y = np.meshgrid(np.arange(n + 1.0), np.arange(n + 1.0))
        self.file.createDimension("num_dim", 3)
        self.put("coordx", x.ravel(), "num_nodes")
        self.put("coordy", y.ravel(), "num_nodes")
        self.put("coordz", 0 * x.ravel(), "num_nodes")

    def block(self, place, elem_type, nodes):
        dimensions = f"num_el_in_blk{place}", f"num_nod_per_el{place}"
        nodes = np.asarray(nodes, np.int32) + 1
        self.put(f"connect{place}", nodes, *dimensions, elem_type=elem_type)

    def side_set(self, place, elements, sides):
        dimension = f"num_side_ss{place}"
        self.put(f"elem_ss{place}", np.asarray(elements, np.int32), dimension)
        self.put(f"side_ss{place}", np.asarray(sides, np.int32), dimension)


def squares(n):
    """The nodes of n by n squares, row by row."""
    first = np.add.outer(np.arange(n) * (n + 1), np.arange(n)).ravel()
    return np.column_stack([first, first + 1, first + n + 2, first + n + 1])


class Seen:
    """Blocks, sets and values of a file by places in space instead of numbers."""

    def __init__(self, path):
        with netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            self.data = {name: file[name][:] for name in file.variables}
            count = len(file.dimensions["num_el_blk"])
            self.types = {}
            for b in range(1, count + 1):
                if f"connect{b}" in self.data:
                    number = int(self.data["eb_prop1"][b - 1])
                    self.types[number] = file[f"connect{b}"].elem_type
        axes = [self.data[f"coord{a}"] for a in "xyz" if f"coord{a}" in self.data]
        self.points = list(zip(*(a.tolist() for a in axes), strict=True))
        self.blocks, self.cells = {}, []
        for b, number in enumerate(self.data["eb_prop1"].tolist(), 1):
            rows = self.data.get(f"connect{b}")
            rows = [] if rows is None else (rows - 1).tolist()
            own = [(number, tuple(self.points[n] for n in row)) for row in rows]
            self.cells += own
            self.blocks[number] = [nodes for _, nodes in own]

    def words(self, key):
        rows = self.data[key].tolist() if key in self.data else []
        return [b"".join(row).decode().strip("\0") for row in rows]

    def side_sets(self):
        """By number: the title, and the places of the nodes of each side, in the order of them."""
        out = {}
        for place, number in enumerate(self.data["ss_prop1"].tolist(), 1):
            sides = []
            listed = zip(
                self.data[f"elem_ss{place}"], self.data[f"side_ss{place}"], strict=True
            )
            for element, side in listed:
                block, nodes = self.cells[element - 1]
                of = SIDES[self.types[block]][int(side)]
                sides.append(tuple(nodes[i] for i in of))
            out[number] = self.words("ss_names")[place - 1], sides
        return out

    def element_values(self):
        """By name and block: values of all steps by the nodes of the element."""
        out = {}
        table = self.data["elem_var_tab"]
        for i, name in enumerate(self.words("name_elem_var")):
            for b, (number, cells) in enumerate(self.blocks.items()):
                key = f"vals_elem_var{i + 1}eb{b + 1}"
                assert bool(table[b, i]) == (key in self.data)
                if key in self.data:
                    values = self.data[key].T.tolist()
                    out[name, number] = dict(zip(cells, values, strict=True))
        return out
