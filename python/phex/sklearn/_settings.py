"""From the parameters of the classifier to the configuration of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from phex.errors import InputError

__all__ = ["configuration"]

SMALLEST_BATCH, LARGEST_BATCH = 8, 64
# Of a linear classifier, and of one with hidden layers.
LEARNING_RATES = (0.03, 0.003)
STEPS = 20
"""Steps that an epoch has at least, where the rows are few."""


def _batch(size: Any, rows: int) -> int:
    if size != "auto":
        return int(size)
    return max(SMALLEST_BATCH, min(LARGEST_BATCH, rows // STEPS))


def _learning_rate(parameters: Mapping[str, Any]) -> float:
    if parameters["learning_rate"] != "auto":
        return float(parameters["learning_rate"])
    return LEARNING_RATES[1 if len(parameters["hidden"]) else 0]


def _schedule(schedule: str) -> dict[str, Any]:
    if schedule == "constant":
        return {"kind": "constant"}
    if schedule in ("cosine", "linear"):
        return {"kind": schedule, "warm_up": 0.1}
    raise InputError(f"schedule is {schedule!r}; it has to be 'constant', 'cosine' or 'linear'")


def _class_weights(weight: Any, names: Mapping[Any, str]) -> Any:
    if weight is None:
        return "none"
    if weight == "balanced":
        return "balanced"
    if not isinstance(weight, Mapping):
        raise InputError(f"class_weight is {weight!r}; it has to be None, 'balanced' or a dictionary")
    unknown = [label for label in weight if label not in names]
    if unknown:
        raise InputError(f"class_weight: {unknown[0]!r} is no class")
    return {"given": {names[label]: float(number) for label, number in weight.items()}}


def _merge(into: dict[str, Any], settings: Mapping[str, Any]) -> None:
    for key, value in settings.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict) and "kind" not in value:
            _merge(into[key], value)
        else:
            into[key] = value


def configuration(
    parameters: Mapping[str, Any], rows: int, names: Mapping[Any, str], seed: int
) -> dict[str, Any]:
    """What `phex_train` reads, of the parameters of a classifier.

    `names` are those of the graph's labels by what stands for them in `y`.
    """
    strength = "given" if parameters["strength"] is None else str(parameters["strength"])
    stage = {"name": "train", "strength": strength, "epochs": int(parameters["epochs"])}
    stages = [stage]
    if parameters["warm_up"] not in (0, "auto"):
        first = {"name": "warm-up", "rows": "most-specific", "epochs": int(parameters["warm_up"])}
        stages = [{**stage, **first}, stage]
    tie = parameters["learn_strengths"]
    learned = {"kind": "learned", "tie": tie, "prior": 0.01, "learning_rate": 0.01, "every": 10}
    found: dict[str, Any] = {
        "head": {
            "hidden": [int(width) for width in parameters["hidden"]],
            "dropout": float(parameters["dropout"]),
            "input_dropout": float(parameters["input_dropout"]),
            "norm": parameters["norm"] or "none",
            "prior": bool(parameters["prior"]),
        },
        "objective": {"kind": "relations", "loss": parameters["loss"]},
        "optimiser": {
            "learning_rate": _learning_rate(parameters),
            "weight_decay": float(parameters["weight_decay"]),
            "schedule": _schedule(parameters["schedule"]),
            "batch": _batch(parameters["batch_size"], rows),
        },
        "stages": stages,
        "strengths": {"kind": "fixed"} if tie is None else learned,
        "validation": {
            "fraction": float(parameters["validation_fraction"]),
            "metric": parameters["metric"],
            "patience": int(parameters["patience"]),
        },
        "class_weights": _class_weights(parameters["class_weight"], names),
        "seed": seed,
    }
    _merge(found, parameters["settings"] or {})
    return found
