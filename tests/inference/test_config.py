"""YAML into settings: variables, and faults named with their place."""

from pathlib import Path

import pytest

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
