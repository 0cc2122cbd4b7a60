"""The shared part of relation layers and losses: relations, strengths, and reading tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from phex._core import Graph
from phex._types import Float64
from phex.errors import InputError
from phex.model import Model
from phex.torch.relations import compiled

__all__ = ["RelationModule"]

#: Neither on nor off nor unknown: the engine names the row and the label.
_NOTHING = 2


class RelationModule(nn.Module):
    """A module with relations, whose strengths may be a parameter."""

    strengths: nn.Parameter | None
    """The learned strengths, if any: factors on the given costs, or costs."""

    def __init__(
        self,
        relations: Graph | Model | RelationModule,
        method: str,
        learn: str | None,
        options: dict[str, Any],
    ) -> None:
        super().__init__()
        if isinstance(relations, Graph):
            self._relations = compiled(relations, {"method": method, **options}, learn)
        elif isinstance(relations, (Model, RelationModule)):
            if method != "auto" or options:
                raise InputError(
                    f"the {type(relations).__name__} is compiled already; give its method and options "
                    "there, or give the graph here"
                )
            if isinstance(relations, Model):
                self._relations = compiled(relations.graph, relations._options, learn, relations._engine)
            elif learn is not None:
                raise InputError("strengths are shared with the module that is given; leave out `learn`")
            else:
                self._relations = relations._relations
        else:
            raise InputError(f"give a graph or a model, not {type(relations).__name__}")
        self._key = self._relations.key
        self._count = len(self._relations.labels)
        if isinstance(relations, RelationModule):
            self.strengths = relations.strengths
        elif self._relations.strengths is None:
            self.register_parameter("strengths", None)
        else:
            values = torch.from_numpy(self._relations.strengths.values)
            self.strengths = nn.Parameter(values.to(torch.get_default_dtype()))

    @property
    def labels(self) -> list[str]:
        """The labels: the columns of logits and targets."""
        return self._relations.labels

    @property
    def strength_names(self) -> list[str]:
        """The name of each learned strength: `scale`, `hierarchy`, `exclusion`, or the relation."""
        return [] if self._relations.strengths is None else self._relations.strengths.names

    def graph(self) -> Graph:
        """The labels and relations, with the strengths learned so far."""
        return self._relations.at(self._values())

    def model(self) -> Model:
        """A compiled model with the strengths learned so far: for best label sets, samples and so on."""
        return Model(self.graph(), **self._relations.options)

    @torch.no_grad()
    def project_(self) -> None:
        """Sets negative strengths to 0. Call it after each step of an optimiser.

        Without it a negative strength counts as 0 too, but then its gradient is 0 and it stays there.
        """
        if self.strengths is not None:
            self.strengths.clamp_(min=0.0)

    def _values(self) -> Float64 | None:
        if self.strengths is None:
            return None
        values: Float64 = self.strengths.detach().to("cpu", torch.float64).numpy()
        return values

    def _costs(self) -> Tensor | None:
        """The strengths for operators; the derivative at 0 is that from above."""
        return None if self.strengths is None else torch.where(self.strengths < 0.0, 0.0, self.strengths)

    def _scores(self, logits: Tensor) -> Tensor:
        if not logits.is_floating_point():
            raise InputError(f"the logits are {logits.dtype}; give floating-point numbers")
        if logits.dim() == 0 or logits.shape[-1] != self._count:
            raise InputError(
                f"the logits have the shape {tuple(logits.shape)}; "
                f"their last dimension must be the {self._count} labels"
            )
        return logits if logits.dtype == torch.float64 else logits.float()

    def extra_repr(self) -> str:
        """What `print` shows."""
        learned = "" if self.strengths is None else f", learn={self._relations.tie!r}"
        return f"{self._count} labels, method={self._relations.options['method']!r}{learned}"


def evidence_codes(values: Tensor) -> Tensor:
    """Evidence as int8: 1 on, 0 off, -1 unknown (also from NaN)."""
    if values.dtype == torch.int8:
        return values
    if values.is_complex():
        raise InputError("evidence must be 1, 0 or -1, not complex numbers")
    if values.is_floating_point():
        whole = torch.where(values.isnan(), -1.0, values).clamp(-_NOTHING, _NOTHING)
        # 0.3 is neither on nor off, and must not become 0.
        return torch.where(whole == whole.round(), whole, _NOTHING).to(torch.int8)
    if values.dtype == torch.bool:
        return values.to(torch.int8)
    # Larger numbers must not wrap around; unsigned ones cannot be compared with a negative one.
    values = values.clamp(max=_NOTHING)
    return (values.clamp(min=-_NOTHING) if values.dtype.is_signed else values).to(torch.int8)
