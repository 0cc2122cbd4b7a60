"""The sampler of leaf rows: shares, that all rows come, order by seed and epoch, processes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed
from torch.utils.data import DataLoader, TensorDataset

import phex
from phex.torch import LeafBatchSampler


def mask(rows: int = 997, leaves: int = 30) -> np.ndarray:
    has_leaf = np.zeros(rows, dtype=bool)
    has_leaf[np.random.default_rng(0).permutation(rows)[:leaves]] = True
    return has_leaf


@pytest.mark.parametrize("share", [0.1, 0.25, 0.6])
def test_every_batch_has_its_share_and_every_row_comes(share: float) -> None:
    has_leaf = mask()
    batches = list(LeafBatchSampler(has_leaf, 32, share=share))
    needed = int(np.ceil(share * 32))
    assert all(len(batch) == 32 for batch in batches[:-1])
    assert all(has_leaf[batch].sum() >= needed for batch in batches)
    counts = np.bincount(np.concatenate(batches), minlength=len(has_leaf))
    assert (counts[~has_leaf] == 1).all()
    assert counts[has_leaf].min() >= 1
    drawn = counts[has_leaf] - 1
    assert drawn.max() - drawn.min() <= 1, "leaf rows come about equally often"


def test_without_few_leaf_rows_batches_are_as_usual() -> None:
    for has_leaf in (mask(leaves=0), mask(leaves=500), mask(leaves=997)):
        batches = list(LeafBatchSampler(has_leaf, 64))
        assert sorted(np.concatenate(batches)) == list(range(len(has_leaf)))
    assert sorted(np.concatenate(list(LeafBatchSampler(mask(), 64, share=0.0)))) == list(range(997))


def test_the_order_follows_from_seed_and_epoch() -> None:
    has_leaf = mask()
    one, other = LeafBatchSampler(has_leaf, 16), LeafBatchSampler(has_leaf, 16)
    epochs = [list(one) for _ in range(3)]
    assert epochs == [list(other) for _ in range(3)]
    assert epochs[0] != epochs[1] != epochs[2]
    other.set_epoch(1)
    assert list(other) == epochs[1]
    assert list(other) == epochs[2]
    assert list(LeafBatchSampler(has_leaf, 16, seed=1)) != epochs[0]


@pytest.mark.parametrize("drop_last", [False, True])
def test_its_length(drop_last: bool) -> None:
    for rows, leaves, size in [(100, 3, 7), (64, 4, 16), (5, 1, 8), (9, 9, 3)]:
        sampler = LeafBatchSampler(mask(rows, leaves), size, drop_last=drop_last)
        batches = list(sampler)
        assert len(batches) == len(sampler)
        assert not drop_last or all(len(batch) == size for batch in batches)


def test_targets_say_which_rows_have_a_leaf() -> None:
    graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).single_label().build()
    targets = torch.tensor([[1, -1, -1], [-1, 1, -1], [1, 0, -1], [1, 0, 0], [-1, -1, -1], [0, -1, 1]])
    expected = [False, True, False, True, False, True]
    half = targets.double()
    half[half < 0] = torch.nan
    for given in (targets, targets.numpy(), targets.to(torch.int8), half):
        assert LeafBatchSampler(given, 2, graph=graph).has_leaf.tolist() == expected
    many = targets.repeat(5000, 1)
    assert LeafBatchSampler(many, 2, graph=graph).has_leaf.tolist() == expected * 5000


def test_in_a_loader_with_workers() -> None:
    has_leaf = mask(200, 10)
    sampler = LeafBatchSampler(has_leaf, 16, share=0.25)
    loader = DataLoader(TensorDataset(torch.arange(200)), batch_sampler=sampler, num_workers=1)
    first = [batch.tolist() for (batch,) in loader]
    assert len(first) == len(loader)
    assert all(has_leaf[batch].sum() >= 4 for batch in first)
    assert first != [batch.tolist() for (batch,) in loader], "each pass is another epoch"


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_processes_share_the_rows(processes: int) -> None:
    has_leaf = mask(1003, 20)
    parts = [
        list(LeafBatchSampler(has_leaf, 16, rank=rank, world_size=processes))
        for rank in range(processes)
    ]
    assert len({len(part) for part in parts}) == 1
    assert all(has_leaf[batch].sum() >= 4 for part in parts for batch in part)
    counts = np.bincount(np.concatenate([np.concatenate(part) for part in parts]), minlength=1003)
    # A row comes twice only to give all processes equally many.
    assert set(counts[~has_leaf]) <= {1, 2}
    assert (counts[~has_leaf] == 2).sum() < processes
    assert counts[has_leaf].min() >= 1


def _sample(rank: int, address: str, folder: str) -> None:
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    sampler = LeafBatchSampler(mask(), 16, seed=4)
    torch.save([sampler.rank, sampler.world_size, list(sampler)], Path(folder) / f"{rank}.pt")
    os._exit(0)  # As in test_torch_systems.


def test_the_process_group_says_which_part(tmp_path: Path) -> None:
    address = (tmp_path / "rendezvous").as_uri()
    torch.multiprocessing.spawn(_sample, args=(address, str(tmp_path)), nprocs=2)
    for rank in range(2):
        expected = list(LeafBatchSampler(mask(), 16, seed=4, rank=rank, world_size=2))
        assert torch.load(tmp_path / f"{rank}.pt") == [rank, 2, expected]


def test_what_cannot_be_sampled() -> None:
    graph = phex.GraphBuilder().hierarchy("animal", ["dog"]).build()
    for arguments, words in [
        ({"rows": mask(), "batch_size": 0}, "batch_size"),
        ({"rows": mask(), "batch_size": 4, "share": 1.0}, "share"),
        ({"rows": mask(), "batch_size": 4, "rank": 2, "world_size": 2}, "rank"),
        ({"rows": mask(), "batch_size": 4, "graph": graph}, "leave out `graph`"),
        ({"rows": np.zeros(5), "batch_size": 4}, "mask of booleans"),
        ({"rows": np.zeros((5, 2)), "batch_size": 4}, "need `graph`"),
        ({"rows": np.zeros((5, 3)), "batch_size": 4, "graph": graph}, "3 columns"),
        ({"rows": np.full((5, 2), 0.5), "batch_size": 4, "graph": graph}, "not valid evidence"),
    ]:
        with pytest.raises(phex.InputError, match=words):
            LeafBatchSampler(**arguments)
