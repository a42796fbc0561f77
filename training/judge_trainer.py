"""JudgeTrainer: a transformers Trainer for numeric judges, with logits at the score positions only."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import Trainer, TrainerCallback

from inference.grid import GridReader, logits_only_at
from inference.prefixes import share_prefixes
from training.arguments import JudgeTrainingArguments
from training.data import Row, chains
from training.losses import ce_loss, raft_loss, score_tensor

Batch = dict[str, Tensor]


class ScoreCollator:
    """Chains of rows → one right-padded batch. Rows of one batch may belong to different dimensions.

    Returns ``input_ids`` (s, t), ``sequence`` and ``column`` (p,) of the positions whose next token is read,
    ``targets`` and ``readers`` (n,), rows in the order of their readers. p ≥ n: a row whose grid shares prefixes (1 and
    10…16) is read once per prefix. s ≤ p: a sequence that another one begins with is read inside it.
    No attention mask is needed: padding stands to the right of every position that is read, and attention is causal.
    """

    def __init__(self, readers: Sequence[GridReader], pad_token_id: int) -> None:
        self.readers = readers
        self.pad_token_id = pad_token_id

    def __call__(self, chains: Sequence[Sequence[Row]]) -> Batch:
        rows = sorted((row for chain in chains for row in chain), key=lambda row: row.reader)
        needed = [ids for row in rows for ids in self.readers[row.reader].rows(row.input_ids)]
        kept, places = share_prefixes(needed)
        longest = max(len(needed[index]) for index in kept)
        padded = [needed[index] + [self.pad_token_id] * (longest - len(needed[index])) for index in kept]
        return {
            "input_ids": torch.tensor(padded),
            "sequence": torch.tensor([sequence for sequence, _ in places]),
            "column": torch.tensor([column for _, column in places]),
            "targets": torch.tensor([row.target for row in rows], dtype=torch.float32),
            "readers": torch.tensor([row.reader for row in rows]),
        }


class BucketSampler(torch.utils.data.Sampler[int]):
    """Indices in batches of similar length, the batches in shuffled order. Depends on (seed, epoch) alone.

    Rows are shuffled, sorted by length within stretches of `stretch` batches, and the batches are shuffled, so that
    lengths mix over the epoch and each epoch forms other batches. The last, short batch stays last.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, *, stretch: int = 50) -> None:
        self.lengths = torch.tensor(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.stretch = stretch
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        order = torch.randperm(len(self.lengths), generator=generator)
        whole = len(order) - len(order) % self.batch_size
        batches: list[Tensor] = []
        for part in torch.split(order[:whole], self.stretch * self.batch_size):
            by_length = part[self.lengths[part].argsort(stable=True)]
            batches.extend(torch.split(by_length, self.batch_size))
        for index in torch.randperm(len(batches), generator=generator).tolist():
            yield from batches[index].tolist()
        yield from order[whole:].tolist()


class SetEpoch(TrainerCallback):
    """Tells the sampler its epoch: accelerate's wrappers hide it where a resumed run skips batches."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.trainer.sampler is not None:
            self.trainer.sampler.set_epoch(int(state.epoch or 0))


class JudgeTrainer(Trainer):
    """Trains a judge on `Row`s. Loss = ce_weight · ce + raft_weight · raft, mean over the rows of a batch.

    An element of the training data is a chain of rows (`data.chains`), computed as one sequence, so
    ``per_device_train_batch_size`` counts chains and a batch may have more rows. `readers` are in the order of
    `Rubric.learned`; `ranges` their (lowest, highest) scores. `score` evaluates a set of rows; `validate` turns it into
    metrics that join the log at each evaluation.
    """

    args: JudgeTrainingArguments

    def __init__(
        self,
        *,
        model: nn.Module,
        args: JudgeTrainingArguments,
        readers: Sequence[GridReader],
        ranges: Sequence[tuple[int, int]],
        pad_token_id: int,
        train_rows: Sequence[Row],
        validate: "Callable[[JudgeTrainer], dict[str, float | None]] | None" = None,
        **kwargs: Any,
    ) -> None:
        self.readers = tuple(readers)
        self.scores = tuple(score_tensor(low, high) for low, high in ranges)
        self.validate = validate
        self.sampler: BucketSampler | None = None
        self.collate = ScoreCollator(self.readers, pad_token_id)
        self._parts: dict[str, list[Tensor]] = defaultdict(list)
        super().__init__(
            model=model,
            args=args,
            data_collator=self.collate,
            # A sequence with a length is all a DataLoader needs.
            train_dataset=[[train_rows[index] for index in chain] for chain in chains(train_rows)],
            **kwargs,
        )
        # The loss is a mean over the batch already; transformers would otherwise divide it again by a token count.
        self.model_accepts_loss_kwargs = False
        self.add_callback(SetEpoch(self))
        self.head: nn.Module = self.accelerator.unwrap_model(self.model).get_output_embeddings()

    def _get_train_sampler(self, train_dataset: Any = None) -> torch.utils.data.Sampler[int] | None:
        if not self.args.bucket_by_length:
            return super()._get_train_sampler(train_dataset)
        data: Any = train_dataset if train_dataset is not None else self.train_dataset
        seed = self.args.data_seed if self.args.data_seed is not None else self.args.seed
        self.sampler = BucketSampler([len(chain[-1].input_ids) for chain in data], self.args.train_batch_size, seed)
        return self.sampler

    def grid_logprobs(self, model: Any, batch: Batch) -> list[tuple[int, Tensor, Tensor]]:
        """(reader, its grid's log-probabilities (m, g), targets (m,)) for each dimension in the batch."""
        with logits_only_at(self.head, batch["sequence"], batch["column"]):
            logits = model(input_ids=batch["input_ids"], use_cache=False).logits
        found = []
        start = 0
        for index, reader in enumerate(self.readers):
            targets = batch["targets"][batch["readers"] == index]
            if len(targets) == 0:
                continue
            end = start + len(targets) * len(reader.prefixes)
            found.append((index, reader.logprobs(logits[start:end].unflatten(0, (-1, len(reader.prefixes)))), targets))
            start = end
        return found

    def compute_loss(
        self, model: nn.Module, inputs: Batch, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        parts: dict[str, list[Tensor]] = {"ce": [], "raft": []}
        for index, logprobs, targets in self.grid_logprobs(model, inputs):
            scores = self.scores[index].to(logprobs.device)
            parts["ce"].append(ce_loss(logprobs, targets, scores))
            parts["raft"].append(raft_loss(logprobs, targets, scores))
        means = {name: torch.cat(values).mean() for name, values in parts.items()}
        for name, value in means.items():
            self._parts[name].append(value.detach())
        loss = self.args.ce_weight * means["ce"] + self.args.raft_weight * means["raft"]
        return (loss, {}) if return_outputs else loss

    def floating_point_ops(self, inputs: Any) -> int:
        """0: transformers would walk all modules to count operations, a fifth of a step on a CPU."""
        return 0

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if "loss" in logs:
            for name, values in self._parts.items():
                logs[name] = round(self.accelerator.gather(torch.stack(values).mean()).mean().item(), 6)
            self._parts.clear()
        super().log(logs, start_time)

    @torch.no_grad()
    def score(self, rows: Sequence[Row], batch_size: int) -> list[dict[str, float]]:
        """Score string → natural log-probability for each row, in the order of `rows`.

        Batches of `batch_size` chains go by length.
        """
        model: Any = self.model
        model.eval()
        order = sorted(chains(rows), key=lambda chain: len(rows[chain[-1]].input_ids))
        result: list[dict[str, float]] = [{} for _ in rows]
        for start in range(0, len(order), batch_size):
            members = [index for chain in order[start : start + batch_size] for index in chain]
            part = sorted(members, key=lambda index: rows[index].reader)
            batch = self._prepare_inputs(self.collate([[rows[index] for index in part]]))
            position = 0
            for reader, logprobs, _ in self.grid_logprobs(model, batch):
                for line in logprobs.tolist():
                    result[part[position]] = dict(zip(self.readers[reader].grid, line, strict=True))
                    position += 1
        return result

    def evaluate(self, *_: Any, metric_key_prefix: str = "eval", **__: Any) -> dict[str, Any]:
        """Metrics of `validate`, logged like any evaluation, so that best-checkpoint selection works on them."""
        assert self.validate is not None
        model: Any = self.model
        was_training = model.training
        found = {f"{metric_key_prefix}_{name}": value for name, value in self.validate(self).items()}
        model.train(was_training)
        self.log({name: value for name, value in found.items() if value is not None})
        # Undefined counts as not better than any checkpoint.
        metrics = {name: float("nan") if value is None else value for name, value in found.items()}
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics
