"""A small C-mesh in OP2's two kinds of file, written with h5py and print alone."""

import h5py
import numpy as np

from meshprep_runtime import Ordering


def c_mesh(i_parts=4, j_parts=3):
    """Coordinates of six decimals, and the tables of cells, edges and boundary edges."""
    ni = 3 * i_parts
    node = lambda i, j: i + j * (ni + 1)  # noqa: E731
    cell = lambda i, j: i + j * ni  # noqa: E731
    z = [
        complex(x, 3 * j / j_parts) ** 2
        for j in range(j_parts + 1)
        for x in np.linspace(-3, 3, ni + 1)
    ]
    x = np.round([[w.real, w.imag] for w in z], 6)
    cells, edges, bedges = [], [], []
    for j in range(j_parts):
        for i in range(ni):
            cells.append((node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)))
            if j == 0 and i < i_parts:
                edges.append((node(i, 0), node(i + 1, 0), cell(ni - 1 - i, 0), cell(i, 0)))
            if j < j_parts - 1:
                edges.append(
                    (node(i, j + 1), node(i + 1, j + 1), cell(i, j), cell(i, j + 1))
                )
            if i < ni - 1:
                edges.append(
                    (node(i + 1, j), node(i + 1, j + 1), cell(i + 1, j), cell(i, j))
                )
    bedges += [
        (node(i, 0), node(i + 1, 0), cell(i, 0), 1) for i in range(i_parts, 2 * i_parts)
    ]
    bedges += [(node(ni, j), node(ni, j + 1), cell(ni - 1, j), 2) for j in range(j_parts)]
    bedges += [
        (node(i + 1, j_parts), node(i, j_parts), cell(i, j_parts - 1), 2)
        for i in reversed(range(ni))
    ]
    bedges += [
        (node(0, j + 1), node(0, j), cell(0, j), 2) for j in reversed(range(j_parts))
    ]
    return x, np.array(cells), np.array(edges), np.array(bedges)


def write_text(path, mesh):
    x, *tables = mesh
    lines = [f"{len(x)} {len(tables[0])} {len(tables[1])} {len(tables[2])}"]
    lines += [f"{a:.6f} {b:.6f}" for a, b in x]
    lines += [" ".join(map(str, row)) for t in tables for row in t]
    path.write_text("\n".join(lines) + "\n")


def attribute_text(item, name, text, size):
    """A C string of this size, as OP2 writes it."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(size)
    made = h5py.h5a.create(item.id, name.encode(), kind, h5py.h5s.create(h5py.h5s.SCALAR))
    made.write(np.array(text.encode(), dtype=f"S{size}"), mtype=kind)


def put_map(file, name, table, dtype="<i4"):
    item = file.create_dataset(name, data=np.asarray(table).astype(dtype))
    item.attrs["size"] = np.array([len(table)], "<i4")
    item.attrs["dim"] = np.array([item.shape[1]], "<i4")
    attribute_text(item, "type", "int", 10)


def put_dat(file, name, values, kind):
    item = file.create_dataset(name, data=values)
    item.attrs["size"] = np.array([values.dtype.itemsize * values.shape[1]], "<i4")
    item.attrs["dim"] = np.array([values.shape[1]], "<i4")
    attribute_text(item, "type", kind, len(kind))


def write_hdf5(path, mesh, base=0, map_dtype="<i4"):
    x, cells, edges, bedges = mesh
    random = np.random.default_rng(1)
    n = len(cells)
    sizes = {"nodes": len(x), "edges": len(edges), "bedges": len(bedges), "cells": n}
    with h5py.File(path, "w") as file:
        for name, size in sizes.items():
            file[name] = np.array([size], "<i4")
        tables = {"pedge": edges[:, :2], "pecell": edges[:, 2:], "pbedge": bedges[:, :2]}
        tables |= {"pbecell": bedges[:, 2:3], "pcell": cells}
        for name, table in tables.items():
            put_map(file, name, table + base, map_dtype)
        put_dat(file, "p_bound", bedges[:, 3:].astype("<i4"), "int")
        put_dat(file, "p_x", x, "double")
        for name, dim in (("p_q", 4), ("p_qold", 4), ("p_res", 4), ("p_adt", 1)):
            put_dat(file, name, random.random((n, dim)), "double")
        put_dat(file, "p_single", random.random((len(edges), 2)).astype("<f4"), "float:soa")
        for name, value in (("gam", [1.4]), ("qinf", [1.0, 2.0, 3.0, 4.0])):
            item = file.create_dataset(name, data=np.array(value))
            item.attrs["dim"] = np.array([len(value)], "<i4")
            attribute_text(item, "type", "double", 6)
        file["flags"] = random.integers(0, 9, n).astype("u1")
        file["flags"].attrs["about"] = "no attribute of OP2"
        file["big_endian"] = np.arange(3.0).astype(">f8")
        file["group/author"] = "someone"
        file["group"].attrs["year"] = 2019
        file["link"] = h5py.SoftLink("/p_q")
        file.attrs["title"] = "airfoil"
    return sizes


def shuffles(sizes, seed=0):
    """A random order of every set."""
    random = np.random.default_rng(seed)
    return {s: Ordering.from_new_to_old(random.permutation(n)) for s, n in sizes.items()}
