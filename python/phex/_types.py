"""The types of arrays, for annotations."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["EvidenceCodes", "Flags", "Float32", "Float64", "Scores"]

EvidenceCodes: TypeAlias = NDArray[np.int8]
"""1 on, 0 off, -1 unknown."""
Flags: TypeAlias = NDArray[np.bool_]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Scores: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
