"""Writing in one step, and strict reading of JSON and CSV."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.errors import UserError, named_list
from inference.files import parse_json, plain_number, read_csv, read_json_lines, write_bytes, write_text


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.txt"
    write_text(path, "first")
    write_text(path, "½ \ud83d")
    assert path.read_bytes() == "½ \\ud83d".encode()
    write_bytes(path, b"\xff")
    assert path.read_bytes() == b"\xff"
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_written_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="folder: cannot be written"):
        write_text(tmp_path / "folder", "x")
    (tmp_path / "file").write_text("old")
    with pytest.raises(UserError, match="cannot be written"):
        write_text(tmp_path / "file" / "a.txt", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 200_000, "nested too deeply"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "repeated keys c"),
        ("{", "Expecting"),
        (b"\xff", "decode"),
    ],
)
def test_faulty_json_is_a_value_error(text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_json(text)


def test_lines_without_a_name_and_long_cells_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,,\n" + "x" * 1_000_000 + ',"2\n3",,\n')
    ((number, row),) = read_csv(path)
    assert (number, len(row["a"]), row["b"]) == (3, 1_000_000, "2\n3")


def test_a_repeated_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,a\n1,2,3\n")
    with pytest.raises(UserError, match=r"a\.csv: the header repeats a;"):
        list(read_csv(path))


@pytest.mark.parametrize("line", ["[" * 200_000, '{"a": 1, "a": 2}', "[1]"])
def test_faulty_json_lines_name_their_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n' + line + "\n")
    with pytest.raises(UserError, match=r"a\.jsonl: line 2 is not"):
        list(read_json_lines(path))


def test_names_are_cut_counted_and_on_one_line() -> None:
    shown = named_list(["id", "two\nlines", "x" * 500, *map(str, range(2997))])
    assert shown.startswith("id, 'two\\nlines', 'xxx")
    assert shown.endswith(" and 2990 more")
    assert len(shown) < 200


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**300), 10**300))
def test_every_finite_number_is_read(number: float) -> None:
    assert plain_number(str(number)) == float(number)


@given(st.text("0123456789+-._eE naif٣", max_size=8))
def test_a_plain_number_is_one_of_json_but_for_sign_and_bare_point(text: str) -> None:
    value = plain_number(text)
    if value is not None:
        assert set(text.strip()) <= set("0123456789+-.eE")
        assert math.isfinite(value)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e400", "[1, -1e999]"])
def test_numbers_that_no_float_holds_are_refused_where_asked(text: str) -> None:
    parse_json(text)
    with pytest.raises(ValueError, match="is no finite number"):
        parse_json(text, finite=True)
