"""Damaged Gmsh files: one line that says what and where, and nothing else, whatever the damage."""

import random
import time
import tracemalloc

import pytest
from gmsh_meshes import KINDS, MSH2, MSH4, binary2, binary4, decorated

from meshprep.io.gmsh import read, write
from meshprep.mesh import Mesh
from meshprep_runtime.errors import MeshprepError


@pytest.fixture
def refuse(tmp_path):
    """Read these bytes, which must be refused, and return why."""
    path = tmp_path / "bad.msh"

    def message(data):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        with pytest.raises(MeshprepError) as caught:
            read(path)
        text = str(caught.value)
        assert text.startswith(f"{path}: ")
        assert "\n" not in text
        return text.removeprefix(f"{path}: ")

    return message


CASES = [
    (MSH2, "2.2 0 8", "3 0 8", "line 2 in $MeshFormat: MSH 3 is not supported: save"),
    (MSH2, "2.2 0 8", "4.0 0 8", "MSH 4.0 is not supported"),
    (MSH2, "2.2 0 8", "1.0 0 8", "MSH 1.0 is not supported"),
    (MSH2, "2.2 0 8", "abc 0 8", "MSH abc is not supported"),
    (MSH2, "2.2 0 8", "2.2 7 8", "file type 7"),
    (MSH2, "2.2 0 8", "2.2 8", "expected version, type and size"),
    (MSH2, "2.2 0 8", "2.2 1 8", "only little-endian files with sizes of 8 bytes are read"),
    (MSH2, "$MeshFormat", "$NOD", "MSH 1.0 is not supported"),
    (MSH2, "$MeshFormat", "MeshFormat", "does not begin with $MeshFormat"),
    (MSH2, "$Nodes\n5", "$Nodes\n6", "$Nodes: expected nodes, found '$EndNodes'"),
    (MSH2, "$Nodes\n5", "$Nodes\n4", "expected $EndNodes, found '99'"),
    (MSH2, "$Nodes\n5", "$Nodes\n-5", "declares -5 nodes"),
    (MSH2, "$Nodes\n5", "$Nodes\nfive", "expected the number of nodes, found 'five'"),
    (MSH2, "$Nodes\n5", f"$Nodes\n{10**12}", "declares 1000000000000 nodes, but only"),
    (MSH2, "$Nodes\n5", f"$Nodes\n{10**30}", "expected the number of nodes"),
    (MSH2, "20 1 0 0", "20 1 0 nan", "node number 20 has the coordinates 1 0 nan"),
    (MSH2, "20 1 0 0", "20 1 0 x", "line 16 in $Nodes: expected nodes, found 'x'"),
    (MSH2, "20 1 0 0", "10 1 0 0", "node number 10 occurs twice"),
    (MSH2, "20 1 0 0", "-20 1 0 0", "node number -20 is negative"),
    (MSH2, "20 1 0 0", "2.5 1 0 0", "expected nodes, found '2.5'"),
    (
        MSH2,
        "5 1 10 20 30",
        "5 1 10 20 31",
        "line 24 in $Elements: an element names node 31",
    ),
    (
        MSH2,
        "2 2 2 5 1",
        "2 34 2 5 1",
        "line 24 in $Elements: element type 34 is not supported",
    ),
    (MSH2, "2 2 2 5 1", "2 -2 2 5 1", "element type -2 is not supported"),
    (MSH2, "2 2 2 5 1", "2 2 -2 5 1", "declares -2 tags"),
    (MSH2, "2 2 2 5 1", f"2 2 {10**15} 5 1", f"declares {10**15} tags"),
    (MSH2, "4 2 4 5 2 1 1", "4 2 4 5 2 2 1", "an element has 4 tags, of which the third"),
    (MSH2, "$Elements\n5", f"$Elements\n{10**12}", "declares 1000000000000 elements"),
    (MSH2, "$Elements\n5", "$Elements\n6", "expected a number of the elements, found"),
    (MSH2, "\n2 2 2 5 1", "\n-2 2 2 5 1", "number -2 is negative"),
    (MSH2, "8 2 2 6 1", "4 2 2 6 1", "element number 4 occurs twice"),
    (MSH2, "$Nodes\n", "$Knots\n", "$EndKnots is missing"),
    (MSH2, "$EndElements", "$EndElement", "expected $EndElements, found '$EndElement'"),
    (MSH2, "$EndComments\n", "", "$EndComments is missing"),
    (MSH2, "$EndNodes", "$EndNodes\nbetween", "expected the begin of a section"),
    (MSH2, "$EndPeriodic", "$EndPeriodic\n$EndPeriodic", "$EndPeriodic closes nothing"),
    (
        MSH2,
        "$Periodic\n1",
        "$Periodic\n2",
        "expected a periodic link, found '$EndPeriodic'",
    ),
    (MSH2, "20 10\n", "20 11\n", "$Periodic: node 11 is not in $Nodes"),
    (MSH2, "Affine 1", "Affine one", "the numbers behind 'Affine' are none"),
    (MSH2, "\n10 1\n", "\n11 1\n", "$NodeData 'pressure': node 11 is not in $Nodes"),
    (MSH2, "\n20 2\n", "\n10 2\n", "'pressure' gives an element of set 'nodes' two values"),
    (MSH2, "8 1 2 3", "7 1 2 3", "$ElementData 'flux': element 7 is not in $Elements"),
    (MSH2, "3\n2\n1\n5\n", "2\n2\n1\n5\n", "has 2 integer tags, but step, components"),
    (MSH2, "3\n2\n1\n5\n", f"3\n2\n1\n{10**12}\n", "declares 1000000000000 entries"),
    (MSH2, "3\n2\n1\n5\n", "3\n2\n0\n5\n", "declares 5 entries of 0 components"),
    (
        MSH2,
        "$PhysicalNames\n3",
        "$PhysicalNames\n4",
        "expected a dimension and a physical group, found",
    ),
    (
        MSH2,
        "$PhysicalNames\n3",
        "$PhysicalNames\n3 4",
        "line 8 in $PhysicalNames: there is more on",
    ),
    (MSH2, '2 6 "whole"', '4 6 "whole"', "dimension 4 is none of 0 to 3"),
    (MSH2, '2 6 "whole"', '2 5 "whole"', "group 5 of dimension 2 has two names"),
    (
        MSH2,
        "$Nodes",
        "$ParametricNodes\n0\n$EndParametricNodes\n$Nodes",
        "the section is there twice",
    ),
    (
        MSH2,
        "$Nodes\n5\n",
        "$ParametricNodes\n1\n1 0 0 0 4 1\n$EndParametricNodes\n$Nodes\n5\n",
        "node 1 is on entity 1 of dimension 4: repair the file",
    ),
    (MSH4, "1 2 2 0\n", f"{10**12} 2 2 0\n", "declares 1000000000004 entities"),
    (MSH4, "1 2 2 0\n", "1 -2 2 0\n", "declares -2 entities of dimension 1"),
    (MSH4, "3 0 0 0 1", "3 0 0 nan 1", "the bounding box of entity 3 is not finite"),
    (MSH4, "0 0 2 7 -8", f"0 0 {10**12} 7 -8", "declares 1000000000000 physical groups"),
    (MSH4, "4 5 1 50", "3 5 1 50", "the blocks hold 3 nodes, fewer"),
    (MSH4, "4 5 1 50", "4 6 1 50", "the blocks hold 5 nodes, fewer"),
    (MSH4, "4 5 1 50", "5 5 1 50", "expected a number of the nodes, found '$EndNodes'"),
    (MSH4, "4 5 1 50", f"{10**12} 5 1 50", "declares 1000000000000 blocks of nodes"),
    (MSH4, "1 3 0 2\n2", "7 3 0 2\n2", "a block of nodes has dimension 7"),
    (MSH4, "1 3 0 2\n2", "1 3 2 2\n2", "the parametric flag 2, must be 0 or 1: repair"),
    (MSH4, "1 3 0 2\n2", "1 3 0 -2\n2", "a block declares -2 nodes"),
    (MSH4, "4 4 1 9", f"4 {10**12} 1 9", "declares 1000000000000 elements"),
    (MSH4, "4 4 1 9", "3 4 1 9", "the blocks hold 3 elements, fewer"),
    (MSH4, "2 1 2 1\n", "3 1 2 1\n", "a block of elements has dimension 3"),
    (
        MSH4,
        "2 1 2 1\n",
        f"2 1 2 {10**17}\n",
        "a block declares 100000000000000000 elements",
    ),
    (MSH4, "2 1 2 1\n", "2 1 140 1\n", "element type 140 is not supported"),
    (MSH4, "3 50 2 4", "3 50 2 6", "line 41 in $Elements: an element names node 6"),
    (MSH4, "1\n2 50\n", "1\n2 51\n", "$Periodic: node 51 is not in $Nodes"),
    (MSH4, "1\n2 50\n", f"{10**12}\n2 50\n", "declares 1000000000000 pairs of nodes"),
    (MSH4, "$Periodic\n", "$Nodes\n", "$Nodes: the section is there twice"),
]


@pytest.mark.parametrize(("text", "old", "new", "expected"), CASES)
def test_damage_has_a_name(refuse, text, old, new, expected):
    assert old in text
    assert expected in refuse(text.replace(old, new, 1))


def test_the_place_in_a_binary_file(refuse):
    data = binary4()
    at = data.index(b"$Elements\n") + 10
    # The first block: its type becomes 200, then its size.
    assert refuse(data[: at + 40] + b"\xc8" + data[at + 41 :]).startswith(
        f"byte {at + 32} in $Elements: element type 200 is not supported"
    )
    assert refuse(data[: at + 44] + b"\xff" * 8 + data[at + 52 :]).startswith(
        f"byte {at + 32} in $Elements: a block declares -1 elements"
    )
    assert refuse(data[: at + 32] + b"\3" + data[at + 33 :]).startswith(
        f"byte {at + 32} in $Elements: a block of elements has dimension 3"
    )
    # The first element begins behind the head; its second node becomes 77.
    assert refuse(data[: at + 68] + b"\x4d" + data[at + 69 :]).startswith(
        f"byte {at + 52} in $Elements: an element names node 77, which is not in $Nodes"
    )
    assert refuse(data[: at + 8] + b"\3" + data[at + 9 :]).startswith(
        f"byte {data.index(b'$EndElements') - 1} in $Elements: the blocks hold 2 elements, fewer"
    )
    data = binary2()
    at = data.index(b"$Elements\n") + 12
    assert refuse(data[:at] + b"\x02\0\0\0\xff\xff\xff\x7f" + data[at + 8 :]).startswith(
        f"byte {at} in $Elements: a block declares 2147483647 elements"
    )


@pytest.mark.parametrize("head", [b"4.1 1 8\n\0\0\0\1", b"4.1 1 4\n\1\0\0\0"])
def test_machines_of_other_kinds(refuse, head):
    found = refuse(binary4().replace(b"4.1 1 8\n\1\0\0\0", head))
    assert "only little-endian files with sizes of 8 bytes are read in binary" in found


def test_missing_sections(refuse):
    for name in ("Nodes", "Elements"):
        start, stop = MSH4.index(f"${name}"), MSH4.index(f"$End{name}") + len(name) + 5
        found = refuse(MSH4[:start] + MSH4[stop:])
        assert found.startswith(f"section ${name} is missing") or "before $Nodes" in found
    assert refuse("$Comments\n$EndComments\n").startswith("section $MeshFormat is missing")
    assert "before $MeshFormat" in refuse("$Nodes\n0\n$EndNodes\n")


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 99, b"\xff\xfe$Mesh", b"(0 fluent)\n", b"$" * 99]
)
def test_no_gmsh_file(refuse, data):
    assert "no Gmsh mesh" in refuse(data)


@pytest.mark.parametrize("section", ["PhysicalNames", "Entities", "Elements", "Periodic"])
def test_sections_that_are_there_twice(refuse, section):
    start, stop = MSH4.index(f"${section}"), MSH4.index(f"$End{section}") + len(section) + 5
    assert f"${section}: the section is there twice" in refuse(MSH4[:stop] + MSH4[start:])


def test_notes_of_meshprep(refuse):
    def noted(text):
        return f"{MSH2}$Meshprep\n{text}\n$EndMeshprep\n"

    assert "unknown version" in refuse(noted("2\nnodes"))
    for text in ("entity 1 2", "entity 1 2 x", "nodes 5", "what", "unnumbered"):
        assert "is damaged: delete this section" in refuse(noted(f"1\n{text}"))
    data = '$NodeData\n3\n"v"\n""\n"meshprep {}"\n0\n3\n0\n1\n1\n10 0.5\n$EndNodeData\n'
    for note in (
        "dat",
        "dat 1 <f4 2,",
        "dat 1 <i4 ,",
        "dat 9 <f4 ,",
        "dat 1 O ,",
        "tag 1 <i4 ,",
    ):
        assert "delete" in refuse(MSH2 + data.replace("{}", note))


def test_no_memory_for_what_is_not_there(tmp_path):
    huge = [
        MSH2.replace("$Nodes\n5", f"$Nodes\n{10**12}"),
        MSH2.replace("$Elements\n5", f"$Elements\n{10**12}"),
        MSH2.replace("3\n2\n1\n5\n", f"3\n2\n{10**9}\n5\n"),
        MSH4.replace("4 5 1 50", f"{10**12} {10**12} 1 50"),
        MSH4.replace("4 4 1 9", f"{10**12} {10**12} 1 9"),
        MSH4.replace("2 1 2 1\n", f"2 1 98 {10**15}\n"),
    ]
    path = tmp_path / "huge.msh"
    for text in huge:
        path.write_text(text)
        tracemalloc.start()
        with pytest.raises(MeshprepError):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000


def samples(folder):
    """Small files of all four kinds, as text by hand and as meshprep writes them."""
    out = [MSH2.encode(), MSH4.encode(), binary2(), binary4()]
    for version, binary in KINDS:
        path = folder / "sample.msh"
        write(decorated(2), path, version=version, binary=binary)
        out.append(path.read_bytes())
    return out


def outcome(path, data):
    """Read these bytes: a mesh or one line; anything else fails the test."""
    path.write_bytes(data)
    try:
        return read(path)
    except MeshprepError as error:
        text = str(error)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert len(text) < 500
    return None


# The four largest files take most of the time: in CI alone.
@pytest.mark.parametrize(
    "number", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 8))]
)
def test_truncated_at_any_byte(tmp_path, number):
    data = samples(tmp_path)[number]
    path = tmp_path / "cut.msh"
    # The larger ones: every byte near the begins and ends of sections, some in between.
    marks = [i for i, c in enumerate(data) if c == ord("$")]
    near = {i + d for i in marks for d in range(-9, 30)}
    stops = (
        range(len(data))
        if len(data) < 1000
        else sorted(near | set(range(0, len(data), 97)))
    )
    whole = [stop for stop in stops if stop < len(data) and outcome(path, data[:stop])]
    # What can be read ends with a whole section that is no part of the mesh itself.
    assert all(data[:stop].rstrip().split()[-1].startswith(b"$End") for stop in whole)
    assert all(b"$EndElements" in data[:stop] for stop in whole)


def damaged(data, r):
    """A few bytes changed, left out, put in or repeated."""
    out = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 4])):
        i, j = r.randrange(len(out)), r.randrange(len(out))
        out[i : i + r.choice([0, 1, 1, 4, 8])] = r.choice(
            [
                *(b"", bytes([r.randrange(256)]), b"-", b"9" * 9, b"nan ", b"\n", b" "),
                *(b"\xff" * 8, b"\0\0\0\x80", b"1e999", b"$", bytes(out[j : j + 8])),
            ]
        )
    return bytes(out)


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))]
)
def test_damaged_at_random(tmp_path, number):
    data, r = samples(tmp_path)[number], random.Random(number)
    path = tmp_path / "bad.msh"
    start = time.process_time()
    found = [outcome(path, damaged(data, r)) for _ in range(300)]
    # of the processor, which others may keep busy
    assert time.process_time() - start < 30
    assert {type(x) for x in found} == {Mesh, type(None)}
