"""Classifiers as folders: the bundle of the command line, with further data for scikit-learn."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from phex._core import Head, Strength
from phex.errors import FileError

if TYPE_CHECKING:
    from phex.sklearn._classifier import RelationClassifier

__all__ = ["feature_names", "read", "write", "write_estimator"]

FILE = "sklearn.json"


def _parameters(classifier: RelationClassifier) -> dict[str, Any]:
    found = dict(classifier.get_params(deep=False))
    # The graph has its own file; a generator cannot be written, and its seed is in `config.json`.
    del found["relations"]
    if not isinstance(found["random_state"], (int, type(None))):
        found["random_state"] = None
    # A copy of the classifier is not the same run.
    found["run_folder"] = None
    if isinstance(found["strength"], Strength):
        found["strength"] = str(found["strength"])
    if isinstance(found["class_weight"], dict):
        # Keys of JSON are texts, but labels may be anything.
        found["class_weight"] = {"pairs": [[label, w] for label, w in found["class_weight"].items()]}
    return found


def _plain(value: Any) -> Any:
    """Converts numbers and arrays of numpy for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} cannot be written as JSON")


def feature_names(classifier: RelationClassifier) -> list[str] | None:
    """The names of the features, if `X` had them."""
    names = getattr(classifier, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _text(classifier: RelationClassifier) -> str:
    labels = classifier.labels_
    written = {
        "parameters": _parameters(classifier),
        "relations": classifier.relations is not None,
        "multilabel": classifier.multilabel_,
        "labels": {"dtype": labels.dtype.str, "values": labels.tolist()},
        "columns": classifier._columns.tolist(),
        "feature_names": feature_names(classifier),
    }
    return json.dumps(written, indent=2, default=_plain) + "\n"


def write(classifier: RelationClassifier, folder: str | PathLike[str]) -> None:
    """Writes a fitted classifier."""
    # Done before anything is written, because a parameter may not be valid JSON.
    text = _text(classifier)
    classifier.head_.save(folder, feature_names(classifier))
    (Path(folder) / FILE).write_text(text, encoding="utf-8")


def write_estimator(classifier: RelationClassifier, folder: str | PathLike[str]) -> None:
    """Writes the data for scikit-learn to a folder that already has the model."""
    (Path(folder) / FILE).write_text(_text(classifier), encoding="utf-8")


def read(classifier: RelationClassifier, folder: str | PathLike[str]) -> None:
    """Loads a folder into a new classifier."""
    path = Path(folder)
    head = Head.load(path)
    labels = head.graph.labels
    found: dict[str, Any] = {
        "parameters": {},
        "relations": True,
        "multilabel": True,
        "labels": {"dtype": None, "values": labels},
        "columns": list(range(len(labels))),
    }
    if (path / FILE).exists():
        try:
            found.update(json.loads((path / FILE).read_text(encoding="utf-8")))
        except json.JSONDecodeError as error:
            raise FileError(f"{path / FILE}: {error}") from None
    else:
        found["feature_names"] = head.names
    if len(found["labels"]["values"]) != len(labels):
        count = len(found["labels"]["values"])
        raise FileError(f"{path / FILE} is of {count} labels, and the model has {len(labels)}")
    parameters = found["parameters"]
    weight = parameters.get("class_weight")
    if isinstance(weight, dict):
        parameters["class_weight"] = dict(weight["pairs"])
    classifier.set_params(**parameters, relations=head.graph if found["relations"] else None)
    values = found["labels"]["values"]
    classifier.labels_ = np.array(values, dtype=found["labels"]["dtype"])
    classifier.multilabel_ = found["multilabel"]
    classifier._columns = np.array(found["columns"], dtype=np.intp)
    classifier.classes_ = classifier.labels_[classifier._columns]
    classifier.n_features_in_ = head.columns
    if found["feature_names"] is not None:
        classifier.feature_names_in_ = np.array(found["feature_names"], dtype=object)
    classifier._take(head)
