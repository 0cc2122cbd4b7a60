"""The loss of partly known labels under relations."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from phex._core import Graph
from phex.errors import InputError
from phex.model import Model
from phex.torch.module import RelationModule, evidence_codes
from phex.torch.ops import relation_loss

__all__ = ["RelationLoss"]

_LOSSES = ("joint", "marginal")
_REDUCTIONS = ("mean", "sum", "none")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"`{name}` is {value!r}; use one of {', '.join(map(repr, known))}")
    return value


class RelationLoss(RelationModule):
    """The loss of partly known labels under the relations of a graph.

    `joint` is minus the log-probability of all known labels of a row together. `marginal`, the loss of
    the paper, is the sum of minus the log-probability of each known label. Rows without known labels and
    rows of weight 0 have a loss and a gradient of 0.

    With `learn`, the strengths of soft relations are a parameter, `strengths`. Add `loss.parameters()`
    to the optimiser, and call `loss.project_()` after each step. Hard relations stay hard, so begin with
    soft ones. When the values change, the relations are compiled again. `DistributedDataParallel` shares
    the gradient of the strengths only if it wraps the loss, or a module that contains it.

    Any engine can be used for training. With `gibbs`, the joint loss is NaN, because sampling gives no
    log-partition; its gradient is valid.

    Args:
        relations: The labels and their relations: a graph, a compiled model, or a `RelationLayer`, whose
            engine and learned strengths it then shares.
        loss: `joint` or `marginal`.
        reduction: `mean` is the sum over rows divided by their number, regardless of their weights (0
            without rows); `sum`; or `none`, one loss per row.
        method: `auto`, `exact`, or an engine by its name.
        learn: Which strengths are learned: `scale` (one factor for all), `kind` (one for hierarchy, one
            for exclusion), `relation` (the cost of each) or None.
        **options: The options of `phex.Model` for the engine.

    >>> import phex, torch
    >>> from phex.torch import RelationLoss
    >>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).build()
    >>> loss = RelationLoss(graph)
    >>> logits = torch.zeros(1, 3, requires_grad=True)
    >>> value = loss(logits, torch.tensor([[1, -1, -1]]))  # An animal, of whatever kind.
    >>> round(value.item(), 3)  # Of the five legal label sets four have an animal.
    0.223
    >>> value.backward()
    >>> logits.grad.numpy().round(3)  # It pulls at the kinds too.
    array([[-0.2, -0.1, -0.1]], dtype=float32)
    """

    def __init__(
        self,
        relations: Graph | Model | RelationModule,
        loss: Literal["joint", "marginal"] = "joint",
        reduction: Literal["mean", "sum", "none"] = "mean",
        method: str = "auto",
        learn: Literal["scale", "kind", "relation"] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(relations, method, learn, options)
        self.loss = _one_of("loss", loss, _LOSSES)
        self.reduction = _one_of("reduction", reduction, _REDUCTIONS)

    def forward(
        self,
        logits: Tensor,
        targets: Tensor,
        mask: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch.

        Args:
            logits: (…, labels), in the order of the graph.
            targets: Known labels, in the shape of the logits: 1 or True is on, 0 or False is off, -1 or
                NaN is unknown.
            mask: False makes a label unknown, regardless of its target. Has the shape of the targets, or
                one that is broadcast to it.
            weights: One for each row, 0 or more; they get no gradient.

        Returns:
            The loss: float64 for float64 logits, else float32.

        Raises:
            InputError: A logit is NaN or infinite, or the targets of a row break hard relations.
                Rows are counted over all dimensions but the last.
        """
        scores = self._scores(logits)
        if targets.shape != scores.shape:
            raise InputError(
                f"the targets have the shape {tuple(targets.shape)}, the logits {tuple(scores.shape)}; "
                "give 1 (on), 0 (off) or -1 (unknown) for each label"
            )
        codes = evidence_codes(targets)
        if mask is not None:
            if mask.dtype != torch.bool:
                raise InputError(f"the mask is {mask.dtype}; give bool: True where a label is known")
            codes = torch.where(mask, codes, -1)
            if codes.shape != scores.shape:
                raise InputError(
                    f"the mask has the shape {tuple(mask.shape)}, the targets {tuple(targets.shape)}"
                )
        if weights is not None:
            if weights.shape != scores.shape[:-1]:
                raise InputError(
                    f"the weights have the shape {tuple(weights.shape)}, but need one for each row: "
                    f"{tuple(scores.shape[:-1])}"
                )
            if weights.requires_grad:
                raise InputError("no gradient goes to the weights of rows; detach them")
        total = self.reduction != "none"
        # Only a sum can have this gradient from the same pass as the losses.
        learns = self.strengths is not None and self.strengths.requires_grad
        by_strengths = total and learns and torch.is_grad_enabled()
        value: Tensor
        value, _, _ = relation_loss(
            scores, codes, weights, self._costs(), self._key, self.loss, total, by_strengths
        )
        if self.reduction == "mean":
            return value / max(scores.shape[:-1].numel(), 1)
        return value

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{super().extra_repr()}, loss={self.loss!r}, reduction={self.reduction!r}"
