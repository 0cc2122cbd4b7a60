"""Estimators for scikit-learn. Needs `phex[sklearn]`.

`RelationClassifier` trains a linear head or a small network through the relations of its labels;
`RelationReconciler` makes the probabilities of any classifier consistent with them, and never worse;
`RelationCalibrator` infers them from its scores, and calibrates them. All go into pipelines, searches
and cross-validation as other classifiers do.

>>> import numpy as np, phex
>>> from phex.sklearn import RelationClassifier
>>> graph = phex.GraphBuilder().hierarchy("pet", ["dog", "cat"]).exclude("siblings").build()
>>> X = np.array([[0.0], [0.1], [1.0], [1.1], [0.5], [5.0]])
>>> y = ["dog", "dog", "cat", "cat", "pet", "pet"]
>>> classifier = RelationClassifier(graph, random_state=0).fit(X, y)
>>> classifier.predict([[-1.0], [2.0]])
array(['dog', 'cat'], dtype='<U3')

A row may know less than another: `pet` says that it is a dog, a cat or another pet.
"""

from phex.sklearn._calibrator import RelationCalibrator
from phex.sklearn._classifier import RelationClassifier
from phex.sklearn._reconciler import RelationReconciler
from phex.sklearn._targets import label_matrix

__all__ = ["RelationCalibrator", "RelationClassifier", "RelationReconciler", "label_matrix"]
