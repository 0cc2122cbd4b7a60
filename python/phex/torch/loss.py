"""The loss of what is known of labels, under relations."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from phex._core import Graph
from phex.errors import InputError
from phex.model import Model
from phex.torch.module import RelationModule, read_known
from phex.torch.ops import relation_loss

__all__ = ["RelationLoss"]

_LOSSES = ("joint", "marginal")
_REDUCTIONS = ("mean", "sum", "none")


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise InputError(f"`{name}` is {value!r}; take one of {', '.join(map(repr, known))}")
    return value


class RelationLoss(RelationModule):
    """The loss of partly known labels under the relations of a graph.

    `joint` is minus the log-probability of everything known of a row, `marginal` the sum of minus the
    log-probability of each known label: the paper's. Rows of which nothing is known, and those of weight
    0, have a loss and a gradient of 0.

    With `learn` the strengths of soft relations are a parameter, `strengths`, beside those of the
    network: give `loss.parameters()` to an optimiser too, and call `loss.project_()` after each of its
    steps. Hard relations stay hard, so begin with soft ones. Whenever the values have changed, the
    relations are compiled again. Under `DistributedDataParallel` the loss has to be wrapped too, or be a
    part of the module that is, for its gradient to be shared.

    Any engine trains. With `gibbs` and the joint loss the value is NaN, for samples know no
    log-partition; the gradient is one nevertheless.

    Args:
        relations: The labels and their relations: a graph, a compiled model, or a `RelationLayer`, with
            which it then shares engine and learned strengths.
        loss: `joint` or `marginal`.
        reduction: `mean` is the sum over rows divided by their number, whatever their weights (0 of no
            rows); `sum`; or `none`: a loss for each row.
        method: `auto`, `exact`, or an engine by its name.
        learn: None, or which strengths are learned: `scale` (one factor on all), `kind` (one for
            hierarchy, one for exclusion) or `relation` (the cost of each).
        **options: Of the engine, as in `phex.Model`.

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
            targets: What is known, in the shape of the logits: 1 or True on, 0 or False off, -1 or NaN
                unknown.
            mask: Where False, labels are unknown whatever the targets say. Of the shape of the targets,
                or of one that is broadcast to it.
            weights: One for each row, 0 or more; no gradient goes to them.

        Returns:
            The loss: float64 of float64 logits, else float32.

        Raises:
            InputError: A logit is NaN or infinite, or what is known of a row breaks hard relations.
                Rows are counted over all dimensions but the last.
        """
        scores = self._scores(logits)
        if targets.shape != scores.shape:
            raise InputError(
                f"the targets have the shape {tuple(targets.shape)}, the logits {tuple(scores.shape)}; "
                "give 1 (on), 0 (off) or -1 (unknown) for each label"
            )
        known = read_known(targets)
        if mask is not None:
            if mask.dtype != torch.bool:
                raise InputError(f"the mask is {mask.dtype}; give bool: True where a label is known")
            known = torch.where(mask, known, -1)
            if known.shape != scores.shape:
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
        # In the same pass as the losses, which only sums can have.
        learns = self.strengths is not None and self.strengths.requires_grad
        by_strengths = total and learns and torch.is_grad_enabled()
        value: Tensor
        value, _, _ = relation_loss(
            scores, known, weights, self._costs(), self._key, self.loss, total, by_strengths
        )
        if self.reduction == "mean":
            return value / max(scores.shape[:-1].numel(), 1)
        return value

    def extra_repr(self) -> str:
        """What `print` shows."""
        return f"{super().extra_repr()}, loss={self.loss!r}, reduction={self.reduction!r}"
