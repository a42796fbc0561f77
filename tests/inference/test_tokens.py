"""Damaged tokenizers."""

from pathlib import Path

import pytest

from inference.errors import UserError
from inference.tokens import load_tokenizer


@pytest.mark.parametrize("content", ["{}", "[]", "{", "null"])
def test_a_damaged_tokenizer_is_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "tokenizer.json").write_text(content)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    with pytest.raises(UserError, match="the tokenizer cannot be loaded") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in str(caught.value)
