"""From the parameters of the classifier to the choices that the recipe of training completes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from phex.errors import InputError

__all__ = ["training_choices"]


def _widths(hidden: Any) -> list[int]:
    return [int(width) for width in hidden]


# Parameters that are choices, with their type in JSON.
CHOICES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "hidden": ("hidden", _widths),
    "dropout": ("dropout", float),
    "input_dropout": ("input_dropout", float),
    "norm": ("norm", str),
    "prior": ("prior", bool),
    "inner_scale": ("inner_scale", float),
    "loss": ("loss", str),
    "epochs": ("epochs", int),
    "learning_rate": ("learning_rate", float),
    "weight_decay": ("weight_decay", float),
    "schedule": ("schedule", str),
    "batch_size": ("batch", int),
    "strength": ("strength", str),
    "learn_strengths": ("learn_strengths", str),
    "strength_folds": ("strength_folds", int),
    "warm_up": ("warm_up", str),
    "leaf_share": ("leaf_share", float),
    "validation_fraction": ("validation_fraction", float),
    "metric": ("metric", str),
    "patience": ("patience", int),
    "all_rows": ("all_rows", bool),
}


def _class_weights(weight: Any, names: Mapping[Any, str]) -> Any:
    if weight == "balanced":
        return "balanced"
    if not isinstance(weight, Mapping):
        raise InputError(f"class_weight is {weight!r}; it must be None, 'balanced' or a dictionary")
    unknown = [label for label in weight if label not in names]
    if unknown:
        raise InputError(f"class_weight: {unknown[0]!r} is not a class")
    return {"given": {names[label]: float(number) for label, number in weight.items()}}


def training_choices(
    parameters: Mapping[str, Any], names: Mapping[Any, str], seed: int
) -> dict[str, Any]:
    """The parameters that are not None, for `Head.train`.

    `names` maps the values of `y` to the names of labels.
    """
    choices: dict[str, Any] = {"settings": parameters["settings"] or {}, "seed": seed}
    for parameter, (choice, convert) in CHOICES.items():
        if parameters[parameter] is not None:
            choices[choice] = convert(parameters[parameter])
    if parameters["class_weight"] is not None:
        choices["class_weights"] = _class_weights(parameters["class_weight"], names)
    return choices
