"""Logits to consistent probabilities, differentiably."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from phex._core import Graph
from phex.errors import InputError
from phex.model import Model
from phex.torch.module import RelationModule, evidence_codes
from phex.torch.ops import marginals

__all__ = ["RelationLayer"]


class RelationLayer(RelationModule):
    """Turns the logits of labels into their probabilities under the relations.

    The gradient by the logits is the covariance of the labels times the incoming gradient, which takes
    two more passes in float64. It needs an exact engine; `RelationLoss` also trains with approximate
    ones.

    Args:
        relations: The labels and their relations: a graph, a compiled model, or a `RelationLoss`, whose
            engine and learned strengths it then shares.
        method: `auto`, `exact`, or an engine by its name.
        learn: Which strengths are learned, as in `RelationLoss`.
        **options: The options of `phex.Model` for the engine.

    >>> import phex, torch
    >>> from phex.torch import RelationLayer
    >>> graph = phex.GraphBuilder().hierarchy("dog", "puppy").build()
    >>> layer = RelationLayer(graph)
    >>> logits = torch.zeros(1, 2, dtype=torch.float64, requires_grad=True)
    >>> probabilities = layer(logits)  # Nothing, a dog, or a dog that is a puppy.
    >>> probabilities.detach().numpy().round(3)
    array([[0.667, 0.333]])
    >>> probabilities[0, 0].backward()  # More of a puppy makes more of a dog.
    >>> logits.grad.numpy().round(3)
    array([[0.222, 0.111]])
    """

    def __init__(
        self,
        relations: Graph | Model | RelationModule,
        method: str = "auto",
        *,
        learn: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(relations, method, learn, options)

    def forward(self, logits: Tensor, evidence: Tensor | None = None) -> Tensor:
        """The probability of each label.

        Args:
            logits: (…, labels), in the order of the graph.
            evidence: Known labels: 1 or True is on, 0 or False is off, -1 or NaN is unknown. Has the
                shape of the logits, or one that is broadcast to it, such as one row for all.

        Returns:
            Probabilities in the shape of the logits: float64 for float64, else float32.

        Raises:
            InputError: A logit is NaN or infinite, or no legal label set agrees with the evidence of a
                row. Rows are counted over all dimensions but the last.
        """
        scores = self._scores(logits)
        codes = None
        if evidence is not None:
            if evidence.dim() > scores.dim() or evidence.shape[-1:] != scores.shape[-1:]:
                raise InputError(
                    f"the evidence has the shape {tuple(evidence.shape)}, "
                    f"the logits have {tuple(scores.shape)}"
                )
            codes = evidence_codes(evidence).expand(scores.shape)
        answer: Tensor = marginals(scores, codes, self._costs(), self._key)
        return answer
