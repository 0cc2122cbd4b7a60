"""Networks trained through label relations, with PyTorch.

`RelationLoss` is the loss of partly known labels: on, off or unknown. Through the relations, the known
labels also train the unknown ones. `RelationLayer` turns logits into consistent probabilities,
differentiably, for a loss that you write. Both are ordinary modules: they work with `torch.compile`,
autocast, `DataParallel` and `DistributedDataParallel`, and can be copied and pickled.

>>> import phex, torch
>>> from phex.torch import RelationLayer, RelationLoss
>>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()
>>> loss, layer = RelationLoss(graph), RelationLayer(graph)
>>> network = torch.nn.Linear(2, 3)
>>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> # A dog, a cat, and an animal of an unknown kind.
>>> targets = torch.tensor([[-1, 1, -1], [-1, -1, 1], [1, -1, -1]])
>>> optimiser = torch.optim.Adam(network.parameters(), lr=0.3)
>>> for _ in range(50):
...     optimiser.zero_grad()
...     loss(network(inputs), targets).backward()
...     optimiser.step()
>>> probabilities = layer(network(inputs)).detach()
>>> bool(probabilities[0, 1] > 0.9), bool(probabilities[1, 2] > 0.9)
(True, True)

Numbers: float32 is computed in float32 and float64 in float64. Logits in half precision, as under
autocast, are computed in float32. Their probabilities and losses are float32 too, because half precision
near 0 and 1 is too coarse for a loss. Their gradient is in half precision.

Devices: contiguous tensors in CPU memory are read in place. Tensors on a CUDA device stay there: the
engines `family`, `states`, `star`, `forest-bp` and `lbp` (flooding) run on the current stream without
waiting, so CUDA graphs can capture them. Rows without an answer are then NaN instead of an error
(`phex.torch.cuda`). For other engines, for learned strengths and on other devices, tensors are copied to
the CPU and back, with a single warning. There are no second derivatives; they raise `RuntimeError`.
"""

from phex.torch.head import RelationHead
from phex.torch.layer import RelationLayer
from phex.torch.loss import RelationLoss
from phex.torch.sampler import LeafBatchSampler

__all__ = ["LeafBatchSampler", "RelationHead", "RelationLayer", "RelationLoss"]
