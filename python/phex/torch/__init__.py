"""Networks trained through label relations, with PyTorch.

`RelationLoss` charges a network for what is known of the labels of each row: on, off or unknown, and
what the relations say of unknown labels reaches the network too. `RelationLayer` turns logits into
consistent probabilities, differentiably, for a loss of one's own. Both are modules like any other: they
go through `torch.compile`, autocast, `DataParallel` and `DistributedDataParallel`, copies and pickles.

>>> import phex, torch
>>> from phex.torch import RelationLayer, RelationLoss
>>> graph = phex.GraphBuilder().hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()
>>> loss, layer = RelationLoss(graph), RelationLayer(graph)
>>> network = torch.nn.Linear(2, 3)
>>> inputs = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> # A dog, a cat, and an animal of a kind that nobody wrote down.
>>> targets = torch.tensor([[-1, 1, -1], [-1, -1, 1], [1, -1, -1]])
>>> optimiser = torch.optim.Adam(network.parameters(), lr=0.3)
>>> for _ in range(50):
...     optimiser.zero_grad()
...     loss(network(inputs), targets).backward()
...     optimiser.step()
>>> probabilities = layer(network(inputs)).detach()
>>> bool(probabilities[0, 1] > 0.9), bool(probabilities[1, 2] > 0.9)
(True, True)

Numbers: float32 is computed and answered in float32, float64 in float64. Logits in half precision (under
autocast, say) are computed in float32, and probabilities and losses come back in float32: near 0 and 1
half precision would round away what a loss needs. Their gradient comes back in half precision.

Tensors in the processor's memory that lie there row after row are read where they are. Tensors on a CUDA
device stay there: `family`, `states`, `star`, `forest-bp` and `lbp` (flooding) run on it, on the current
stream, with no wait, so that CUDA graphs can capture them; rows without an answer are then NaN instead
of an error (`phex.torch.cuda`). Other engines, learned strengths, and tensors of other devices are
copied to the processor and back, and a warning says so once. There are no second derivatives: asking
for them raises `RuntimeError`.
"""

from phex.torch.head import RelationHead
from phex.torch.layer import RelationLayer
from phex.torch.loss import RelationLoss
from phex.torch.sampler import LeafBatchSampler

__all__ = ["LeafBatchSampler", "RelationHead", "RelationLayer", "RelationLoss"]
