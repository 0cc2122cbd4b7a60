"""The checks that scikit-learn has for estimators."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from phex.sklearn import RelationCalibrator, RelationClassifier, RelationReconciler

WEIGHTS = (
    "training goes over shuffled batches of rows, and standardises features by rows without weights, so "
    "that a row of weight two is not two rows to the last bit"
)

CERTAIN = "trees say 0 and 1 exactly, which the check does not allow; consistent rows stay as they are"


def expected(estimator: Any) -> dict[str, str]:
    if isinstance(estimator, RelationClassifier):
        return {"check_sample_weight_equivalence_on_dense_data": WEIGHTS}
    if isinstance(estimator, RelationReconciler) and isinstance(
        estimator.estimator, DecisionTreeClassifier
    ):
        return {"check_classifiers_multilabel_output_format_predict_proba": CERTAIN}
    return {}


@parametrize_with_checks(
    [
        RelationClassifier(),
        RelationClassifier(hidden=(16,)),
        RelationCalibrator(LogisticRegression()),
        RelationCalibrator(DecisionTreeClassifier(max_depth=3, random_state=0)),
        RelationReconciler(LogisticRegression()),
        RelationReconciler(DecisionTreeClassifier(max_depth=3, random_state=0)),
    ],
    expected_failed_checks=expected,
)
def test_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
