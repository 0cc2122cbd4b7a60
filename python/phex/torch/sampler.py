"""Batches in which at least a share of the rows is labelled with a leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler

from phex._core import LEAF_SHARE, Graph, epoch_rows, rows_with_leaf
from phex._types import Flags
from phex.errors import InputError
from phex.torch.module import evidence_codes

__all__ = ["LeafBatchSampler"]

#: Rows whose targets are read at once.
_CHUNK = 1 << 14


class LeafBatchSampler(Sampler[list[int]]):
    """Draws batches in which at least a share of the rows is labelled with a leaf.

    If few rows are labelled with a leaf, most batches have nothing that tells the leaves apart. This
    sampler fills a share of each batch with such rows, which are used again and again; an epoch still
    goes over all rows. If that share of all rows is labelled with a leaf anyway, batches are drawn as
    usual. `phex train` draws its batches in the same way.

    Give it to a `DataLoader` as `batch_sampler`. Under `DistributedDataParallel` each process gets its
    part of the rows, and all get equally many batches. Each pass over the sampler is another epoch, with
    another order; `set_epoch` sets its number, for example after a run was resumed.

    Args:
        rows: Targets (rows × labels; 1 on, 0 off, -1 or NaN unknown), which need `graph`; or a mask of
            booleans that says which rows are labelled with a leaf.
        batch_size: Rows per batch of one process.
        graph: The labels of the targets.
        share: The smallest share of leaf rows in a batch, 0 or more and below 1. None: the recipe's.
        drop_last: Whether to leave out the last batch if it is smaller.
        seed: The seed of the order. It has to be the same in all processes.
        rank: Which of the processes this is. None: as `torch.distributed` says, if it is in use.
        world_size: How many processes there are. None: as `torch.distributed` says, if it is in use.

    >>> import numpy as np, phex
    >>> from phex.torch import LeafBatchSampler
    >>> has_leaf = np.zeros(1000, dtype=bool)
    >>> has_leaf[:20] = True  # Only 20 rows are labelled with a leaf,
    >>> batches = list(LeafBatchSampler(has_leaf, 64))
    >>> all(has_leaf[batch].sum() >= len(batch) / 4 for batch in batches)  # but a quarter of each batch.
    True
    """

    def __init__(
        self,
        rows: Tensor | np.ndarray[Any, Any],
        batch_size: int,
        *,
        graph: Graph | None = None,
        share: float | None = None,
        drop_last: bool = False,
        seed: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
    ) -> None:
        if batch_size < 1:
            raise InputError(f"`batch_size` is {batch_size}; it has to be 1 or more")
        self.has_leaf = _has_leaf(rows, graph)
        self.batch_size = batch_size
        self.share = LEAF_SHARE if share is None else share
        if not 0.0 <= self.share < 1.0:
            raise InputError(f"`share` is {share}; it has to be 0 or more and below 1")
        self.drop_last = drop_last
        self.seed = seed
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if world_size is None:
            world_size = torch.distributed.get_world_size() if distributed else 1
        if rank is None:
            rank = torch.distributed.get_rank() if distributed else 0
        if not 0 <= rank < world_size:
            raise InputError(f"`rank` is {rank} of {world_size} processes; they are counted from 0")
        self.rank, self.world_size = rank, world_size
        self.epoch = 0
        #: Rows of an epoch: the same number in each.
        self._rows = len(self._order())

    def _order(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return epoch_rows(
            self.has_leaf,
            self.share,
            self.batch_size,
            seed=self.seed,
            epoch=self.epoch,
            rank=self.rank,
            of=self.world_size,
        )

    def set_epoch(self, epoch: int) -> None:
        """Sets the number of the next epoch, on which its order depends."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        """The rows of each batch of the next epoch."""
        order = self._order()
        self.epoch += 1
        for start in range(0, len(self) * self.batch_size, self.batch_size):
            yield order[start : start + self.batch_size].tolist()

    def __len__(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self._rows, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _has_leaf(rows: Tensor | np.ndarray[Any, Any], graph: Graph | None) -> Flags:
    given = rows if isinstance(rows, Tensor) else torch.from_numpy(np.asarray(rows))
    if given.dim() == 1 and given.dtype == torch.bool:
        if graph is not None:
            raise InputError("a mask says which rows have a leaf, so leave out `graph`")
        found: Flags = given.cpu().numpy()
        return found
    if given.dim() != 2:
        raise InputError(
            f"the rows have the shape {tuple(given.shape)} and the type {given.dtype}; give targets "
            "(rows × labels) with `graph`, or a mask of booleans, one for each row"
        )
    if graph is None:
        raise InputError("targets need `graph`, which says which labels are leaves")
    parts = [np.zeros(0, dtype=bool)]
    for start in range(0, len(given), _CHUNK):
        codes = evidence_codes(given[start : start + _CHUNK])
        parts.append(rows_with_leaf(graph, codes.cpu().numpy()))
    return np.concatenate(parts)
