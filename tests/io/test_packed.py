"""Packed files that hold more than they say, or than a mesh can use: refused with little memory."""

import base64
import gzip
import io as streams
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib

import meshio
import numpy as np
import pytest
from field_files import make_plan
from texts import refused

from meshprep import io
from meshprep.io.fields import move_files
from meshprep.io.text import packed
from meshprep_runtime.errors import MeshprepError

LARGE = 1 << 28


def zeros(n):
    """So many zeros, packed by zlib a piece at a time."""
    packer = zlib.compressobj(9)
    pieces = [packer.compress(bytes(1 << 20)) for _ in range(n >> 20)]
    return b"".join([*pieces, packer.flush()])


def vtu(n_points, header, data):
    """A triangle whose points are one packed block."""
    points = (
        base64.b64encode(struct.pack("<QQQQ", *header)) + base64.b64encode(data)
    ).decode()
    return f"""<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian"
header_type="UInt64" compressor="vtkZLibDataCompressor"><UnstructuredGrid>
<Piece NumberOfPoints="{n_points}" NumberOfCells="1"><Points>
<DataArray type="Float64" NumberOfComponents="3" format="binary">{points}</DataArray></Points>
<Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">3</DataArray>
<DataArray type="UInt8" Name="types" format="ascii">5</DataArray></Cells>
</Piece></UnstructuredGrid></VTKFile>"""


@pytest.mark.parametrize(
    ("n_points", "declared", "message"),
    [
        # more than the points need
        (3, LARGE, f"array '' declares {LARGE} bytes where 72 belong"),
        # more than the header says
        (3, 72, "a packed block does not hold the 72 bytes that are declared"),
        # as many as both say, which no mesh has in so few bytes
        (LARGE // 24, LARGE // 24 * 24, "more than a mesh can have"),
    ],
)
def test_a_vtu_file_of_zeros_is_refused_before_it_takes_memory(
    n_points, declared, message, tmp_path
):
    data = zeros(LARGE)
    text = vtu(n_points, (1, declared, 0, len(data)), data)
    tracemalloc.start()
    try:
        refused(text, tmp_path / "a.vtu", message)
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["vtkZLibDataCompressor", "vtkLZMADataCompressor"])
def test_a_packed_block_gives_the_declared_bytes_or_an_error(name):
    import lzma

    pack = zlib.compress if "ZLib" in name else lzma.compress
    data, unpack = pack(bytes(range(100))), packed.packer(name)
    assert packed.unpack_block(unpack, data, 100) == bytes(range(100))
    for n in (0, 99, 101):
        with pytest.raises(MeshprepError, match=f"does not hold the {n} bytes"):
            packed.unpack_block(unpack, data, n)
    with pytest.raises(MeshprepError, match="a packed block"):
        packed.unpack_block(unpack, data[:-5], 100)
    with pytest.raises(MeshprepError, match="a packed block is damaged"):
        packed.unpack_block(unpack, b"rubbish", 100)


def test_values_that_are_all_zero_are_no_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "_HARMLESS", 0)
    points = np.random.default_rng(0).random((300, 3))
    cells = [("triangle", np.arange(300).reshape(100, 3))]
    values = {f"u{i}": np.zeros((300, 3)) for i in range(9)}
    mesh = meshio.Mesh(points, cells, point_data=values)
    meshio.write(tmp_path / "a.vtu", mesh)
    assert (io.read(tmp_path / "a.vtu").dat("u8", "nodes").values == 0).all()


def test_a_gz_file_is_unpacked_no_further_than_can_be_meant(tmp_path):
    path = tmp_path / "points.gz"
    with gzip.open(path, "wb", 9) as file:
        for _ in range(LARGE >> 20):
            file.write(b" " * (1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(
            MeshprepError, match=r"points\.gz has more than 64 MiB in \d+ packed"
        ):
            packed.read_gz(path, "points.gz")
        assert tracemalloc.get_traced_memory()[1] < 1.5e8
    finally:
        tracemalloc.stop()
    assert len(packed.read_gz(path, "points.gz", elements=1 << 20)) == LARGE
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(MeshprepError, match=r"points\.gz cannot be unpacked"):
        packed.read_gz(path, "points.gz", elements=1 << 20)


def test_an_array_of_an_archive_may_not_be_larger_than_the_mesh_can_use(tmp_path):
    plan, _ = make_plan(tmp_path)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        head = streams.BytesIO()
        shape = {"descr": "<f8", "fortran_order": False, "shape": (LARGE // 8,)}
        np.lib.format.write_array_header_1_0(head, shape)
        with archive.open("u.npy", "w") as file:
            file.write(head.getvalue())
            for _ in range(LARGE >> 20):
                file.write(bytes(1 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(
            MeshprepError, match=r"a\.npz: member 'u\.npy' has more than 64 MiB"
        ):
            move_files(plan, [tmp_path / "a.npz"])
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_an_entity_that_grows_is_refused(tmp_path):
    grown = [f'<!ENTITY a{k} "{f"&a{k - 1};" * 10}">' for k in range(1, 10)]
    doctype = f'<!DOCTYPE v [<!ENTITY a0 "0 0 0 0 0 0 0 0 0 0">{"".join(grown)}]>'
    text = vtu(3, (0, 0, 0, 0), b"").replace(">0 1 2<", ">&a9;<")
    tracemalloc.start()
    try:
        refused(doctype + text, tmp_path / "a.vtu", "amplification")
    finally:
        tracemalloc.stop()


LIMITED = """
import resource, sys
from meshprep import io
from meshprep_runtime.errors import MeshprepError
io.FORMATS
limit = 3 << 30
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    io.read(sys.argv[1])
except MeshprepError as error:
    print(error)
"""


def test_a_declaration_that_exceeds_memory_is_one_line(tmp_path):
    """Where a size passes every check and memory ends all the same."""
    head = "# vtk DataFile Version 5.1\nt\nBINARY\nDATASET UNSTRUCTURED_GRID\n"
    path = tmp_path / "a.vtk"
    with path.open("wb") as file:
        file.write(f"{head}POINTS {1 << 27} double\n".encode())
        file.truncate(1 << 33)
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("\n") == 1, done.stderr
    assert "more than fits into memory" in done.stdout or "enough memory" in done.stdout
