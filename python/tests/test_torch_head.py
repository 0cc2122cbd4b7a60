"""The head for relations: its values, start, scale and gradients, and what PyTorch does with modules."""

from __future__ import annotations

import copy
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from graphs import named
from torch import distributed, nn
from torch.autograd import gradcheck

import phex
from phex.sklearn import RelationClassifier
from phex.torch import RelationHead, RelationLayer, RelationLoss


def taxonomy() -> phex.Graph:
    builder = (
        phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).hierarchy("dog", ["puppy", "hound"])
    )
    return builder.hierarchy("vehicle", ["car", "bus"]).single_label().build()


INNER = ["animal", "dog", "vehicle"]


def trained(head: RelationHead) -> RelationHead:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return head


def test_the_scale_is_that_of_the_recipe() -> None:
    graph = taxonomy()
    rows = np.zeros((4, 2))
    fitted = RelationClassifier(graph, epochs=1, random_state=0).fit(rows, ["car", "bus", "cat", "dog"])
    expected = json.loads(fitted.head_.config)["head"]["inner_scale"]
    scale = dict(zip(graph.labels, RelationHead(2, graph).scale.tolist(), strict=True))
    for label in graph.labels:
        assert scale[label] == pytest.approx(expected if label in INNER else 1.0), label
    # Labels that overlap are no taxonomy.
    for name, other in named().items():
        assert RelationHead(2, other).scale.eq(1.0).all(), name
    assert RelationHead(2, graph, inner_scale=0.5).scale.min().item() == 0.5
    for relations in (graph.compile(), RelationLoss(graph), RelationLayer(graph)):
        assert torch.equal(RelationHead(2, relations).scale, RelationHead(2, graph).scale)


def test_values_are_those_of_a_scaled_linear_layer() -> None:
    graph = taxonomy()
    head = RelationHead(5, graph, dtype=torch.float64)
    rows = torch.randn(2, 3, 5, dtype=torch.float64)
    assert head(rows).eq(0.0).all(), "it starts at zero"
    trained(head)
    expected = head.scale.numpy() * (
        rows.numpy() @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    )
    np.testing.assert_allclose(head(rows).detach(), expected, atol=1e-12)
    head.reset_parameters()
    assert head(rows).eq(0.0).all()
    without = RelationHead(5, graph, bias=False)
    assert list(without.state_dict()) == ["weight", "scale"]
    assert without(rows.float()).shape == (2, 3, len(graph))


def test_gradients() -> None:
    graph = taxonomy()
    head = trained(RelationHead(3, graph, dtype=torch.float64))
    loss = RelationLoss(graph)
    rows = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    targets = torch.full((4, len(graph)), -1)
    targets[range(4), [0, 1, 4, 6]] = 1
    assert gradcheck(lambda at: loss(head(at), targets), (rows,), atol=1e-7)
    value = torch.tensor(0.01, dtype=torch.float64)
    assert gradcheck(
        lambda weight: loss(nn.functional.linear(rows, weight, head.bias) * head.scale, targets),
        (head.weight,),
        atol=1e-7,
    )
    loss(head(rows), targets).backward()
    # The scale is not trained, and reaches the gradient of the weights.
    assert not head.scale.requires_grad
    at = graph.index("animal")
    head.scale[at] += value
    before = head.weight.grad[at].clone()
    head.scale[at] -= value
    plain = trained(RelationHead(3, graph, inner_scale=1.0, dtype=torch.float64))
    logits = (plain(rows.detach()) * head.scale).detach().requires_grad_()
    loss(logits, targets).backward()
    expected = head.scale[at] * logits.grad[:, at] @ rows.detach()
    torch.testing.assert_close(before, expected)


def test_the_state_goes_round_with_the_scale() -> None:
    graph = taxonomy()
    head = trained(RelationHead(4, graph, inner_scale=0.25))
    rows = torch.randn(3, 4)
    file = io.BytesIO()
    torch.save(head.state_dict(), file)
    file.seek(0)
    other = RelationHead(4, graph)
    assert not torch.equal(other.scale, head.scale)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(rows), head(rows))
    assert torch.equal(copy.deepcopy(head)(rows), head(rows))
    # Made without memory, filled later.
    empty = RelationHead(4, graph, device="meta")
    empty.load_state_dict(head.state_dict(), assign=True)
    assert torch.equal(empty(rows), head(rows))


@pytest.mark.filterwarnings("default::DeprecationWarning")  # PyTorch's own, on the first use of compile.
def test_under_compile_autocast_and_half_precision() -> None:
    graph = taxonomy()
    head, rows = trained(RelationHead(4, graph)), torch.randn(8, 4)
    compiled = torch.compile(head, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(rows), head(rows))
    torch.compiler.reset()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(rows)
        assert logits.dtype == torch.bfloat16
        targets = torch.full((8, len(graph)), -1)
        targets[:, graph.index("animal")] = 1
        RelationLoss(graph)(logits, targets).backward()
    torch.testing.assert_close(logits.float(), head(rows), atol=0.1, rtol=0.02)
    assert head.weight.grad.dtype == torch.float32
    assert head.weight.grad.abs().sum() > 0.0
    assert copy.deepcopy(head).bfloat16()(rows.bfloat16()).dtype == torch.bfloat16
    assert copy.deepcopy(head).double()(rows.double()).dtype == torch.float64


def _gradient(head: nn.Module, rows: torch.Tensor, targets: torch.Tensor) -> list[torch.Tensor]:
    RelationLoss(taxonomy())(head(rows), targets).backward()
    return [parameter.grad.clone() for parameter in head.parameters()]


def _batch() -> tuple[torch.Tensor, torch.Tensor]:
    graph = taxonomy()
    targets = torch.full((8, len(graph)), -1)
    targets[range(8), [label % len(graph) for label in range(8)]] = 1
    return torch.randn(8, 4, generator=torch.Generator().manual_seed(1)), targets


def _train(rank: int, address: str, folder: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    head = nn.parallel.DistributedDataParallel(trained(RelationHead(4, taxonomy())))
    rows, targets = _batch()
    torch.save(_gradient(head, rows[rank::2], targets[rank::2]), Path(folder) / f"{rank}.pt")
    os._exit(0)  # As in test_torch_systems.


def test_distributed_data_parallel(tmp_path: Path) -> None:
    expected = _gradient(trained(RelationHead(4, taxonomy())), *_batch())
    address = (tmp_path / "rendezvous").as_uri()
    torch.multiprocessing.spawn(_train, args=(address, str(tmp_path)), nprocs=2)
    for rank in range(2):
        for gradient, other in zip(torch.load(tmp_path / f"{rank}.pt"), expected, strict=True):
            torch.testing.assert_close(gradient, other)


def test_what_cannot_be_a_head() -> None:
    graph = taxonomy()
    with pytest.raises(phex.InputError, match="0 features"):
        RelationHead(0, graph)
    with pytest.raises(phex.InputError, match="not str"):
        RelationHead(3, "animals.toml")
    for scale in (-1.0, float("nan"), float("inf")):
        with pytest.raises(phex.InputError, match="inner_scale"):
            RelationHead(3, graph, inner_scale=scale)
