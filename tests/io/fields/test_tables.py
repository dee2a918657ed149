"""Tables of values: lines move whole, columns of indices get new numbers, headers stay."""

import csv

import pytest
from field_files import make_plan, there_and_back

from meshprep_runtime import MeshprepError


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_of_a_table_move_whole(tmp_path, ending, last):
    plan, order = make_plan(tmp_path)
    rows = [f'{i},0.{i}0,"a ""{i}"" {chr(10)}line"' for i in range(11)]
    text = ending.join(["id,t,note", *rows]) + (ending if last else "")
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    there, back = there_and_back(plan, path)
    with open(there, newline="") as file:
        found = list(csv.reader(file))[1:]
    assert [int(r[0]) for r in found] == order["edges"].new_to_old.tolist()
    assert found[0][2] == f'a "{found[0][0]}" \nline'
    assert back.read_bytes().rstrip() == path.read_bytes().rstrip()


def test_columns_of_indices_get_new_numbers(tmp_path):
    plan, order = make_plan(tmp_path)
    path = tmp_path / "t.tsv"
    ends = [(i % 7, i % 5) for i in range(11)]
    path.write_text("a\tcell\tx\n" + "".join(f"{a}\t{c}\t{a}.5\n" for a, c in ends))
    declared = {"a": "edges->nodes", "cell": "edges->twins"}
    there, back = there_and_back(plan, path, declared=declared)
    expected = [
        [str(order["nodes"].old_to_new[a]), str(order["twins"].old_to_new[c]), f"{a}.5"]
        for a, c in (ends[i] for i in order["edges"].new_to_old)
    ]
    assert [line.split("\t") for line in there.read_text().splitlines()[1:]] == expected
    assert back.read_bytes() == path.read_bytes()
    for wrong, message in (
        ({"b": "edges->nodes"}, "has no column 'b'"),
        ({"x": "edges->nodes"}, "other than whole numbers"),
        ({"a": "edges->cells"}, "indices outside the 5 of set 'cells'"),
    ):
        with pytest.raises(MeshprepError, match=message):
            there_and_back(plan, path, declared=wrong)


def test_tables_without_a_header(tmp_path):
    plan, order = make_plan(tmp_path)
    (tmp_path / "t.csv").write_text("".join(f"{i};{i}.5\n" for i in range(7)))
    there, _ = there_and_back(plan, tmp_path / "t.csv")
    first = [int(line.split(";")[0]) for line in there.read_text().splitlines()]
    assert first == order["nodes"].new_to_old.tolist()


@pytest.mark.parametrize("rows", [7, 8])
def test_a_line_of_text_above_lines_of_text_is_a_header_where_that_fits(tmp_path, rows):
    """Of 8 lines all are rows, of 9 the first is a header although there are 9 nodes."""
    sizes = {"edges": 8} if rows == 7 else {"edges": 8, "nodes": 9}
    plan, order = make_plan(tmp_path, sizes)
    lines = [f"name {i}\n" for i in range(rows + 1)]
    (tmp_path / "t.csv").write_text("".join(lines))
    there, _ = there_and_back(plan, tmp_path / "t.csv")
    head = rows - 7
    moved = [lines[head + i] for i in order["edges"].new_to_old]
    assert there.read_text() == "".join(lines[:head] + moved)


@pytest.mark.parametrize("head", ["", "first;second\n"])
def test_a_byte_order_mark_stays_at_the_start(tmp_path, head):
    plan, order = make_plan(tmp_path)
    path = tmp_path / "t.csv"
    path.write_text(head + "".join(f"{i};{i}.5\n" for i in range(7)), encoding="utf-8-sig")
    there, back = there_and_back(plan, path)
    rows = [f"{i};{i}.5\n" for i in order["nodes"].new_to_old]
    assert there.read_text(encoding="utf-8-sig") == head + "".join(rows)
    assert back.read_bytes() == path.read_bytes()


def test_a_column_after_a_byte_order_mark_is_found(tmp_path):
    plan, order = make_plan(tmp_path)
    path = tmp_path / "t.csv"
    path.write_text("cell;x\n" + "".join(f"{i % 5};{i}\n" for i in range(7)), "utf-8-sig")
    there, _ = there_and_back(plan, path, declared={"cell": "nodes->cells"})
    _, *rows = there.read_text("utf-8-sig").splitlines()
    new = order["cells"].old_to_new
    assert rows == [f"{new[i % 5]};{i}" for i in order["nodes"].new_to_old]


def test_a_column_of_one_name_alone_gets_new_numbers(tmp_path):
    plan, _ = make_plan(tmp_path)
    (tmp_path / "t.csv").write_text("cell,cell\n" + "1,2\n" * 7)
    with pytest.raises(MeshprepError, match="has several columns 'cell'"):
        there_and_back(plan, tmp_path / "t.csv", declared={"cell": "nodes->cells"})
