"""What is said of tensors on several devices. Needs no GPU: they are refused before anything runs."""

import pytest

torch = pytest.importorskip("torch")

from phex import errors  # noqa: E402
from phex.torch import cuda  # noqa: E402


def test_tensors_on_another_device_are_refused_by_name():
    logits, elsewhere = torch.zeros(2, 3), torch.zeros(2, 3, device="meta")
    with pytest.raises(errors.InputError, match="evidence are on `meta`, the logits on `cpu`"):
        cuda.loss(None, logits, elsewhere, None, "joint")
    with pytest.raises(errors.InputError, match="weights are on `meta`"):
        cuda.loss(None, logits, logits, elsewhere[:, 0], "joint")
    with pytest.raises(errors.InputError, match=r"evidence are on `meta`.*move them there"):
        cuda.marginals(None, logits, elsewhere)
    with pytest.raises(errors.InputError, match="slopes are on `meta`"):
        cuda.covariance(None, logits, elsewhere, None)
