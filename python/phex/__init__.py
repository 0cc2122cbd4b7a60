"""Classifiers that respect what is known about their labels.

A puppy is a dog; a dog is not a cat; an antelope is *sort of* furry. Write such relations down, hard
or soft, and phex turns the scores of any classifier into consistent probabilities:

>>> import phex
>>> builder = phex.GraphBuilder()
>>> graph = builder.hierarchy("animal", ["dog", "cat"]).exclude("siblings").build()
>>> model = graph.compile()
>>> model.marginals([[0.0, 2.0, -1.0]]).round(3)
array([[0.898, 0.757, 0.038]])

Those are the scores of a classifier that is trained through the relations. Finished probabilities of
any other classifier are made consistent by `reconcile`, which never makes a row worse:

>>> phex.reconcile(graph, [[0.5, 0.6, 0.1]]).round(3)
array([[0.587, 0.514, 0.073]])

`phex.torch` trains networks through the relations, `phex.sklearn` has estimators, `phex.plot` draws.
"""

from phex._core import (
    Finding,
    Graph,
    GraphBuilder,
    Plan,
    PlannedPart,
    Posterior,
    ReconcilePlan,
    Report,
    RootCause,
    Step,
    Strength,
    Strengths,
    __version__,
    set_threads,
    threads,
)
from phex.errors import (
    BudgetError,
    EngineError,
    FileError,
    FinishedWarning,
    GraphError,
    InputError,
    PhexError,
    TrainingError,
)
from phex.interchange import from_networkx, to_bqm, to_networkx
from phex.model import LabelSets, Model
from phex.reconciler import Reconciled, Reconciler, reconcile

load = Graph.load

__all__ = [
    "BudgetError",
    "EngineError",
    "FileError",
    "Finding",
    "FinishedWarning",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "InputError",
    "LabelSets",
    "Model",
    "PhexError",
    "Plan",
    "PlannedPart",
    "Posterior",
    "ReconcilePlan",
    "Reconciled",
    "Reconciler",
    "Report",
    "RootCause",
    "Step",
    "Strength",
    "Strengths",
    "TrainingError",
    "__version__",
    "from_networkx",
    "load",
    "reconcile",
    "set_threads",
    "threads",
    "to_bqm",
    "to_networkx",
]
