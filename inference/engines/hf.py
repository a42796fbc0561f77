"""Engine on transformers and PEFT: float32 on a CPU, or a GPU where there is one.

Grids are read from the logits after the prompts, in one batched forward pass that computes no other logits; a prompt
that another one begins with is read inside it. Other calls are generated. A JSON schema is not enforced here: the
parser refuses what doesn't fit, and the method asks once more.
"""

import gc
from collections.abc import Sequence
from typing import Any

from inference.adapters import TEXT_NAMES, Adapter
from inference.engines.base import EngineConfig
from inference.engines.local import LocalEngine, require
from inference.prefixes import share_prefixes
from inference.records import Call, Completion, Usage
from inference.tokens import score_token_ids


class HFEngine(LocalEngine):
    """See the module."""

    kind = "hf"

    def __init__(self, config: EngineConfig, *, merge: bool = True) -> None:
        """`merge`: add the adapter's weights to the model's (see `load_model`)."""
        require("torch", "pip install 'creajudge[train]'")
        super().__init__(config)
        self._merge = merge
        self._model: Any = None

    @property
    def model(self) -> Any:
        """The transformers model with the adapter in it, loaded on first use."""
        if self._model is None:
            self._model = load_model(self.config, self.adapter, merge=self._merge)
        return self._model

    def group(self, call: Call) -> str:
        """Calls with a grid share a forward pass, greedy ones of one length a generation."""
        if call.grid:
            return "grid"
        return f"greedy {call.max_tokens}" if call.temperature == 0 else "sampled"

    def answer(self, calls: Sequence[Call], prompts: Sequence[list[int]]) -> Sequence[Completion]:
        if calls[0].grid:
            return self._read_grids([call.grid or () for call in calls], prompts)
        if calls[0].temperature == 0:
            return self._generate(calls[0], prompts)
        # One at a time, so that a sample depends on its own seed and not on its neighbours.
        return [self._generate(call, [prompt])[0] for call, prompt in zip(calls, prompts, strict=True)]

    def _read_grids(self, grids: Sequence[tuple[str, ...]], prompts: Sequence[list[int]]) -> list[Completion]:
        import torch

        from inference.grid import GridReader

        readers = {grid: GridReader(grid, score_token_ids(self.tokenizer, grid)) for grid in set(grids)}
        rows = [readers[grid].rows(prompt) for grid, prompt in zip(grids, prompts, strict=True)]
        logits = self.last_logits([ids for needed in rows for ids in needed]).split([len(needed) for needed in rows])
        with torch.inference_mode():
            found = [readers[grid].logprobs(part[None])[0].tolist() for grid, part in zip(grids, logits, strict=True)]
        return [
            _grid_completion(grid, values, sum(map(len, needed)))
            for grid, values, needed in zip(grids, found, rows, strict=True)
        ]

    def last_logits(self, rows: Sequence[list[int]]) -> Any:
        """Next-token logits after each row of token ids: a tensor (rows, vocabulary)."""
        import torch

        from inference.grid import logits_only_at

        kept, places = share_prefixes(rows)
        ids, mask, positions = self._padded([rows[index] for index in kept])
        sequences = torch.tensor([sequence for sequence, _ in places], device=ids.device)
        starts = (mask == 0).sum(dim=1)
        columns = starts[sequences] + torch.tensor([column for _, column in places], device=ids.device)
        head = self.model.get_output_embeddings()
        with torch.inference_mode(), logits_only_at(head, sequences, columns):
            return self.model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits

    def _generate(self, call: Call, prompts: Sequence[list[int]]) -> list[Completion]:
        import torch
        from transformers import GenerationConfig

        ids, mask, _ = self._padded(prompts)
        ends = _end_tokens(self.model, self.tokenizer)
        sampling = {"do_sample": True, "temperature": call.temperature, "top_k": 0, "top_p": 1.0}
        settings: Any = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=call.max_tokens,
            eos_token_id=ends,
            pad_token_id=self._pad(),
            **(sampling if call.temperature > 0 else {"do_sample": False}),
        )
        with torch.inference_mode(), torch.random.fork_rng():
            # The same content asked for again is another sample, so it needs another seed.
            torch.manual_seed(call.seed + call.repeat)
            output = self.model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        rows = output[:, ids.shape[1] :].tolist()
        return [self._text(row, ends, len(prompt)) for row, prompt in zip(rows, prompts, strict=True)]

    def _text(self, row: list[int], ends: list[int], prompt_tokens: int) -> Completion:
        end = next((index for index, token in enumerate(row) if token in ends), None)
        written = row if end is None else row[:end]
        return Completion(
            text=self.tokenizer.decode(written, skip_special_tokens=True),
            finish_reason="length" if end is None else "stop",
            usage=Usage(prompt=prompt_tokens, completion=len(written) + (end is not None)),
        )

    def _padded(self, rows: Sequence[list[int]]) -> tuple[Any, Any, Any]:
        """Token ids, attention mask and position ids, padded on the left so that all rows end in the last column."""
        import torch

        width = max(len(row) for row in rows)
        device = self.model.device
        ids = torch.tensor([[self._pad()] * (width - len(row)) + row for row in rows], device=device)
        mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=device)
        return ids, mask, (mask.cumsum(dim=1) - 1).clamp_min(0)

    def _pad(self) -> int:
        """Any id will do: the mask hides it."""
        return int(self.tokenizer.pad_token_id or 0)

    def release(self) -> None:
        self._model = None
        gc.collect()


def load_model(config: EngineConfig, adapter: Adapter | None, *, merge: bool) -> Any:
    """The transformers model of a config in evaluation mode, with the adapter's weights added to it.

    In float32 the sum W + BA is taken once (`merge`), which saves a third of the time; in bfloat16 it would be rounded.
    """
    import torch
    from transformers import AutoModelForCausalLM

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model: Any = AutoModelForCausalLM.from_pretrained(
        config.model,
        dtype=getattr(torch, config.dtype),
        local_files_only=True,
        trust_remote_code=False,
        use_safetensors=True,
    )
    if adapter is not None:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, str(adapter.path), use_safetensors=True, key_mapping=TEXT_NAMES)
        if merge and config.dtype == "float32":
            model = model.merge_and_unload()
    return model.to(device).eval()


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    ends = model.generation_config.eos_token_id
    listed = ends if isinstance(ends, list) else [ends]
    return sorted({int(token) for token in [*listed, tokenizer.eos_token_id] if token is not None})


def _grid_completion(grid: tuple[str, ...], values: Sequence[float], prompt_tokens: int) -> Completion:
    logprobs = dict(zip(grid, values, strict=True))
    return Completion(
        text=max(logprobs, key=lambda text: logprobs[text]),
        grid_logprobs=logprobs,
        usage=Usage(prompt=prompt_tokens, completion=1),
    )
