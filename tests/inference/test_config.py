"""YAML into settings: variables, and faults named with their place."""

from pathlib import Path

import pytest
from pydantic import Field

from inference.config import StrictModel, expand_variables, load_config, read_yaml
from inference.errors import UserError


class Inner(StrictModel):
    count: int = 1


class Settings(StrictModel):
    name: str
    inner: Inner = Inner()


def written(folder: Path, content: bytes) -> Path:
    path = folder / "config.yaml"
    path.write_bytes(content)
    return path


def test_variables_take_the_environment_or_their_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET", "value")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    assert expand_variables("${SET}/a ${UNSET:-data}/b ${EMPTY:-c} $SET") == "value/a data/b c $SET"
    with pytest.raises(UserError, match="UNSET is not set"):
        expand_variables("${UNSET}")


def test_variables_are_values_not_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "x}\nname: injected")
    content = read_yaml(written(tmp_path, b"# ${UNSET_IN_COMMENT}\nlist: [{name: '${NAME}'}]\n"))
    assert content == {"list": [{"name": "x}\nname: injected"}]}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"name: a\nnmae: b\n", "nmae: unknown key"),
        (b"inner: {count: many}\nname: a\n", "inner.count"),
        (b"inner: {}\n", "name: Field required"),
        (b"- a\n- b\n", "found list"),
        (b"", "found NoneType"),
        (b"name: [a\n", "not valid YAML"),
        (b"name: \xff\n", "cannot be read as UTF-8"),
    ],
)
def test_a_faulty_file_gives_one_line_with_its_place(tmp_path: Path, content: bytes, place: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UserError) as caught:
        load_config(path, Settings)
    assert place in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_config(tmp_path / "absent.yaml", Settings)


BOMB = b"a0: &a0 [x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (i, i, b",".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 30)
)


class Listed(StrictModel):
    items: tuple[Inner, ...] = Field(min_length=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"name: 2024-99-99", "month must be in 1..12"),
        (b"name: !!int abc", "tagged value"),
        (b"name: !!timestamp abc", "tagged value"),
        (b"name: !!bool abc", "tagged value"),
        (b"name: !!int ''", "tagged value"),
        (b"name: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        (b"name: &x [*x]", "an alias that holds itself"),
        (b"a: &a {x: 1}\nname:\n  <<: *a", "the key '<<' is not taken, write it out.*line 3"),
        (BOMB, "more than 100,000 values"),
        (b"name: " + b"[" * 200_000, "nested too deeply"),
        (b"name: a\ninner: {count: 1}\nname: b", "the key 'name' is repeated.*line 3"),
        (b"inner: {count: 1, count: 2}", "the key 'count' is repeated"),
        (b'name: "\\ud800"', "half a surrogate pair"),
        (b'name: "a\\0b"', "NUL character"),
        (b'"\\ud800": a', "half a surrogate pair"),
        (b"name: ${SURELY_UNSET}", "the environment variable SURELY_UNSET is not set"),
        (b'"two\\nlines": a', "'two.*nlines': unknown key"),
    ],
)
def test_hostile_yaml_is_one_sentence_with_the_file(tmp_path: Path, content: bytes, says: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UserError, match=says) as caught:
        load_config(path, Settings)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_path_with_a_nul_is_one_sentence() -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_yaml("a\0b")


def test_faulty_items_are_not_called_missing_as_well(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        load_config(written(tmp_path, b"items: [{count: many}]"), Listed)
    assert "items.0.count" in str(caught.value)
    assert "at least 1 item" not in str(caught.value)
    with pytest.raises(UserError, match="items: Tuple should have at least 1 item"):
        load_config(written(tmp_path, b"items: []"), Listed)


def test_small_aliases_are_taken(tmp_path: Path) -> None:
    content = read_yaml(written(tmp_path, b"a: &x {count: 1}\nb: [*x, *x]\n"))
    assert content == {"a": {"count": 1}, "b": [{"count": 1}, {"count": 1}]}
