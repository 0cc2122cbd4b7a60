"""The last layer of a network with relations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from phex._core import Graph, score_scales
from phex.errors import InputError
from phex.model import Model
from phex.torch.module import RelationModule

__all__ = ["RelationHead"]


class RelationHead(nn.Module):
    """A linear layer from features to the logits of labels, `s * (W x + b)`, made for relations.

    It follows the recipe of training that `phex train` and `RelationClassifier` follow:

    - W and b start at zero. With random weights, a coarse label trains whichever of its leaves is ahead.
    - The factor s is 1 for leaves. In a single-label graph it is smaller for labels that have children:
      their scores collect the gradients of all rows below them, and would otherwise move first and most,
      while the leaves learn little.

    The factors are a buffer, `scale`: they are part of the `state_dict` and are not trained.

    Args:
        features: The number of features.
        relations: The labels: a graph, a compiled model, or a `RelationLoss` or `RelationLayer`.
        inner_scale: The factor on the scores of labels that have children. None: the recipe's in
            single-label graphs, else 1.
        bias: Whether there is a bias b.
        device: Where weights and factors are kept.
        dtype: The type of weights and factors.

    >>> import phex, torch
    >>> from phex.torch import RelationHead
    >>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).single_label().build()
    >>> head = RelationHead(512, graph)
    >>> head
    RelationHead(512 features, 3 labels, inner_scale=0.1)
    >>> head(torch.randn(2, 512)).shape
    torch.Size([2, 3])
    >>> list(head.state_dict())
    ['weight', 'bias', 'scale']
    """

    scale: Tensor
    """The factor on the logit of each label."""

    def __init__(
        self,
        features: int,
        relations: Graph | Model | RelationModule,
        *,
        inner_scale: float | None = None,
        bias: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if features < 1:
            raise InputError(f"there are {features} features; a head needs one or more")
        if isinstance(relations, RelationModule):
            graph = relations._relations.graph
        elif isinstance(relations, Model):
            graph = relations.graph
        elif isinstance(relations, Graph):
            graph = relations
        else:
            raise InputError(f"give a graph or a model, not {type(relations).__name__}")
        dtype = torch.get_default_dtype() if dtype is None else dtype
        empty = torch.empty(len(graph), features, device=device, dtype=dtype)
        self.weight = nn.Parameter(empty)
        if bias:
            self.bias = nn.Parameter(torch.empty(len(graph), device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        scale = torch.from_numpy(score_scales(graph, inner_scale))
        self.register_buffer("scale", scale.to(device=empty.device, dtype=dtype))
        self._inner_scale = min(scale.tolist(), default=1.0) if inner_scale is None else inner_scale
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weights and biases to zero, where training starts."""
        nn.init.zeros_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, features: Tensor) -> Tensor:
        """The logits (…, labels) of features (…, features), of the type that a linear layer gives."""
        logits = nn.functional.linear(features, self.weight, self.bias)
        return logits * self.scale.to(logits.dtype)

    def extra_repr(self) -> str:
        """What `print` shows."""
        labels, features = self.weight.shape
        bias = "" if self.bias is not None else ", bias=False"
        return f"{features} features, {labels} labels, inner_scale={self._inner_scale:g}{bias}"
