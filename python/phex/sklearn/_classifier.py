"""A classifier that is trained through the relations of its labels."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from phex._core import Graph, Head
from phex._types import Flags, Float32, Float64
from phex.errors import EngineError, InputError, PhexError
from phex.model import Model
from phex.sklearn import _bundle
from phex.sklearn._answers import RelationAnswers
from phex.sklearn._settings import training_choices
from phex.sklearn._targets import Targets, read_relations, read_targets

__all__ = ["RelationClassifier"]

OPERATIONS = 1e7
"""Operations per row that an exact engine may take; beyond them, another engine is used."""


def read_weights(sample_weight: ArrayLike | None, rows: int) -> Float64 | None:
    """A weight for each row: finite, not negative, not all zero."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(rows, float(weights))
    if weights.shape != (rows,):
        raise InputError(f"sample_weight has the shape {weights.shape}, and there are {rows} rows")
    bad = np.flatnonzero(~((weights >= 0) & np.isfinite(weights)))
    if len(bad):
        raise InputError(f"sample_weight, row {bad[0]}: {weights[bad[0]]} is not a number of 0 or more")
    if not weights.any():
        raise InputError("sample_weight is zero in every row")
    return weights


class RelationClassifier(RelationAnswers):
    """A linear classifier, or a small network, that is trained through the relations of its labels.

    `y` may be

    - one label per row: the name of a label of the graph, as precise as you know it. A husky that is
      labelled `dog` trains all labels below `dog`. The relations determine the other labels: those
      above the named one are on, those that it excludes are off, and the rest are unknown
      (`unlisted="off"` sets them to off). If the graph excludes nothing, no label is ever known to be
      off; then pass `unlisted="off"` or a table.
    - a table, rows × labels: 1 is on, 0 is off, -1 or NaN is unknown. Its columns are in the order of
      `graph.labels`, or are found by name in a data frame. In cross-validation, use -1, because
      scikit-learn rejects NaN in y.
    - a list of names per row. Labels that are not named are off, unless `unlisted="unknown"`.
      Cross-validation of scikit-learn rejects lists; `label_matrix` turns them into a table.

    Features are numbers. They are standardised in float32; missing values (NaN) are replaced by the
    mean. The same `random_state` gives the same bits. Ctrl-C stops a run.

    If a parameter of training is None, the recipe chooses it, as in `phex train`.
    `json.loads(classifier.head_.config)` shows what was chosen.

    Args:
        relations: A `phex.Graph`, or the path of a graph file. None: with one label per row, exactly one
            label is on (a softmax), and labels may be of any type; with a table, labels are unrelated.
        hidden: The width of each hidden layer; empty for a linear classifier.
        dropout: The fraction of hidden values dropped at random in training.
        input_dropout: The fraction of features dropped at random in training.
        norm: Normalisation of hidden layers: `none`, `batch` or `layer`.
        prior: Whether biases start at the frequencies of the labels. None: they do if most rows have
            every label on or off.
        inner_scale: The factor on the scores of labels that have children. None: 1, or 0.1 / √a for
            single-label graphs whose leaves have a labels above them on average.
        loss: `joint` (minus the log-probability of all targets of a row at once) or `marginal` (the sum
            over its targets). Only the latter accepts rows that contradict hard relations.
        epochs: The number of passes over the rows. None: 30, or as many as make 4000 steps.
        learning_rate: The size of a step. None: 0.001 with hidden layers, else 0.001 √(256 / features).
        weight_decay: Weight decay per step, times the learning rate.
        schedule: How the learning rate changes: `cosine` or `linear` (falls to zero; `cosine=0.1` first
            rises for a tenth of the steps), `constant`, or `step=10,0.5` (times 0.5 every 10 epochs).
        batch_size: Rows per step. None: a twentieth of the rows, between 8 and 64.
        strength: The strength of all relations in training and prediction: `hard`, `u=0.5`, `q=0.1`,
            `w=2`, or `scale=2`, which multiplies the given costs. None: as in the graph.
        learn_strengths: Learn soft strengths: `scale` (one factor), `kind` (one for hierarchy, one for
            exclusion) or `relation` (each), which finds wrong relations. None: not learned. Instead of
            the first two, choose `strength` by cross-validation, which did better in our experiments.
        strength_folds: Learn strengths on this number of parts of the rows, each with the scores of a
            model that has not seen the part. 0 learns them together with the weights. None: 2 for
            `relation`, else 0.
        warm_up: Epochs on the rows labelled with a leaf, before all rows are used. `auto`: as many steps
            as one epoch over all rows, if some rows are labelled with a leaf and some are not. Without
            it, coarse rows would favour leaves at random before fine rows are seen.
        leaf_share: The share of each batch that is drawn from the rows labelled with a leaf. None: 0.25
            with hidden layers if only some rows are labelled with a leaf, else 0.
        validation_fraction: The fraction of the rows held out to choose the epoch to keep. None: 0.1 of
            1000 rows or more, else 0; 0 trains on all rows.
        metric: The metric that chooses the epoch: `loss`, `accuracy` or `au-prc`.
        patience: Training ends after this many epochs without improvement; 0 means never. None: 5, or 0
            if `epochs` is given.
        all_rows: After validation has chosen the epochs, train once more on all rows, also those that
            were held out. None: for linear heads.
        class_weight: None, `balanced` (weights rows by how rare their most specific label is) or a
            dictionary from labels to weights; other labels have the weight 1.
        unlisted: The state of labels that a row does not name: `unknown`, or `off` (labels above the
            named ones are on). `auto` is `unknown` for one label per row, and `off` for lists.
        classes: For one label per row: the labels from which `predict` chooses, and whose probabilities
            `predict_proba` returns. `leaves`, `all`, the name of a one-of group, or a list of labels.
            None: the one-of group that contains all labels of `y`, else the leaves.
        decide: How `predict` decides. For one label per row: `best` (the most probable class) or
            `back-off` (the most specific label whose probability reaches `threshold`, else the best;
            `classes_` then has all labels). For sets: `threshold` (labels whose probability reaches it),
            `best` or `back-off` with all labels above it, or `consistent` (the most probable set that
            the relations allow). `auto` is `best` for one label per row, and `threshold` for sets.
        threshold: The probability that a label has to reach.
        settings: Any other setting of training, nested as in the `config.json` of a model. The
            parameters above override it. For example `{"optimiser": {"average": 0.999}}`.
        run_folder: A folder that keeps checkpoints while `fit` runs, and the model at the end. The same
            `fit` resumes an interrupted run to the same bits; a finished run is read instead of trained.
            It needs a number as `random_state`. None: nothing is written.
        random_state: The seed of everything random.
        verbose: Whether to print one line per epoch.

    Attributes:
        classes_: The labels of the columns of `predict_proba`: sorted for one label per row, and in the
            order of the table for sets.
        labels_: All labels, in the order of the graph: the columns of `predict_marginals`.
        graph_: The relations, with the strengths of the last stage or the learned ones.
        head_: The trained head.
        model_: The compiled relations, which turn the logits of `decision_logits` into probabilities.
        multilabel_: Whether `y` had sets of labels.
        history_: The record of each epoch.
        n_features_in_: The number of features.
        feature_names_in_: The names of the features, if `X` had them.

    >>> import phex
    >>> from phex.sklearn import RelationClassifier
    >>> builder = phex.GraphBuilder().hierarchy("pet", ["dog", "cat"])
    >>> graph = builder.hierarchy("dog", ["husky", "poodle"]).single_label().build()
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [1, 1]]
    >>> y = ["husky", "poodle", "cat", "cat", "dog", "dog", "pet", "cat"]
    >>> classifier = RelationClassifier(graph, epochs=200, random_state=0).fit(X, y)
    >>> classifier.predict(X[:4])
    array(['husky', 'poodle', 'cat', 'cat'], dtype='<U6')
    >>> classifier.classes_
    array(['cat', 'husky', 'poodle'], dtype='<U6')
    >>> marginals = classifier.predict_marginals(X)
    >>> marginals.shape
    (8, 5)
    >>> pet, dog, cat = (marginals[:, graph.index(label)] for label in ("pet", "dog", "cat"))
    >>> bool((dog + cat <= pet + 1e-9).all())
    True
    """

    def __init__(
        self,
        relations: Graph | str | PathLike[str] | None = None,
        *,
        hidden: Sequence[int] | None = None,
        dropout: float | None = None,
        input_dropout: float | None = None,
        norm: str | None = None,
        prior: bool | None = None,
        inner_scale: float | None = None,
        loss: str | None = None,
        epochs: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        schedule: str | None = None,
        batch_size: int | None = None,
        strength: Any = None,
        learn_strengths: str | None = None,
        strength_folds: int | None = None,
        warm_up: int | str | None = None,
        leaf_share: float | None = None,
        validation_fraction: float | None = None,
        metric: str | None = None,
        patience: int | None = None,
        all_rows: bool | None = None,
        class_weight: Any = None,
        unlisted: str = "auto",
        classes: Any = None,
        decide: str = "auto",
        threshold: float = 0.5,
        settings: dict[str, Any] | None = None,
        run_folder: str | PathLike[str] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.relations = relations
        self.hidden = hidden
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.norm = norm
        self.prior = prior
        self.inner_scale = inner_scale
        self.loss = loss
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.batch_size = batch_size
        self.strength = strength
        self.learn_strengths = learn_strengths
        self.strength_folds = strength_folds
        self.warm_up = warm_up
        self.leaf_share = leaf_share
        self.validation_fraction = validation_fraction
        self.metric = metric
        self.patience = patience
        self.all_rows = all_rows
        self.class_weight = class_weight
        self.unlisted = unlisted
        self.classes = classes
        self.decide = decide
        self.threshold = threshold
        self.settings = settings
        self.run_folder = run_folder
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Any, y: Any, *, sample_weight: ArrayLike | None = None) -> Self:
        """Trains.

        Args:
            X: Rows × features.
            y: The known labels of each row; the class describes its forms.
            sample_weight: The weight of each row. Only ratios matter, and rows of weight 0 are left
                out.

        Raises:
            TrainingError: A row contradicts hard relations, or a setting is out of range.
            InputError: `y` or a parameter cannot be used.
        """
        self._check_decision()
        features = self._read(X, reset=True)
        targets = read_targets(y, read_relations(self.relations), self.unlisted)
        check_consistent_length(features, targets.evidence)
        weights = read_weights(sample_weight, len(features))
        graph = targets.graph
        if not ((targets.evidence == 0).any() or graph.exclusions or graph.one_of or graph.rule):
            warnings.warn(
                "neither y nor the relations say that any label is off, so all labels will come out "
                "as on; build the graph with single_label() if each row is exactly one kind, or give "
                "unlisted='off'",
                stacklevel=2,
            )
        elif targets.given is not None and not (targets.evidence == 0).any():
            for finding in graph.check().of_kind("unrelated-roots"):
                warnings.warn(
                    f"y has one label per row, but {len(finding.labels)} roots are unrelated, such as "
                    f"`{finding.labels[0]}` and `{finding.labels[1]}`, so a row may be all of them at "
                    "once; build the graph with single_label() if each row is exactly one kind",
                    stacklevel=2,
                )
        self._set_labels(targets)
        self._take(self._train(features, targets, weights))
        if self.run_folder is not None:
            _bundle.write_estimator(self, self.run_folder)
        return self

    def _train(self, features: Float32, targets: Targets, weights: Float64 | None) -> Head:
        evidence = targets.evidence
        if self.run_folder is not None and not isinstance(self.random_state, (int, np.integer)):
            raise InputError("run_folder needs a number as random_state, to recognise the run")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        names = dict(zip(targets.values.tolist(), targets.graph.labels, strict=True))
        if weights is not None:
            kept = weights > 0
            features, evidence, weights = features[kept], evidence[kept], weights[kept]
            weights = weights / weights.mean()
        choices = training_choices(self.get_params(deep=False), names, int(seed))
        try:
            return Head.train(
                targets.graph,
                features,
                evidence,
                json.dumps(choices),
                weights,
                self._watch(),
                self.run_folder,
                _bundle.feature_names(self),
            )
        except PhexError as error:
            if weights is not None and len(features) < len(targets.evidence):
                error.add_note("rows are counted without those of weight 0")
            raise

    def _watch(self) -> Callable[[str], None] | None:
        if not self.verbose:
            return None

        def report(text: str) -> None:
            record = json.loads(text)
            times = ("stage", "epoch", "seconds", "profile")
            numbers = ", ".join(f"{key} {record[key]}" for key in record if key not in times)
            print(f"{record['stage']}, epoch {record['epoch']}: {numbers}")

        return report

    def _take(self, head: Head) -> None:
        """Sets the attributes that follow from a head."""
        self.head_ = head
        self.graph_ = head.graph
        self.history_: list[dict[str, Any]] = json.loads(head.history)
        self.n_iter_ = len(self.history_)
        try:
            self.model_ = Model(self.graph_, "exact", operations=OPERATIONS)
        except EngineError:
            self.model_ = Model(self.graph_)

    def _read(self, X: Any, reset: bool) -> Float32:
        least = 2 if reset else 1
        read: NDArray[Any] = validate_data(
            self,
            X,
            dtype=np.float32,
            order="C",
            ensure_all_finite="allow-nan",
            ensure_min_samples=least,
            reset=reset,
        )
        return read

    def decision_logits(self, X: Any) -> Float32:
        """The logits of the head, before the relations apply."""
        check_is_fitted(self)
        return self.head_.logits(self._read(X, reset=False))

    def predict_marginals(self, X: Any) -> Float64:
        """The probability of each label of the graph: rows × `labels_`.

        They agree with the relations: under a hard hierarchy, a label is never more probable than one
        above it. They do not sum to one. If no exact engine can handle the graph, they are computed by
        the engine that trained the head.
        """
        check_is_fitted(self)
        features = self._read(X, reset=False)
        if not self.model_.plan.exact:
            return self.head_.probabilities(features).astype(np.float64)
        answer: Float64 = self.model_._marginals(self.head_.logits(features).astype(np.float64))
        return answer

    def _consistent(self, X: Any) -> Flags:
        answer: Flags = self.model_.map(self.decision_logits(X))
        return answer

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes a model that `phex predict`, `phex eval` and `RelationClassifier.load` read.

        Its columns are `feature_names_in_`, or `f0`, `f1` and so on, as in an npy file.
        """
        check_is_fitted(self)
        _bundle.write(self, folder)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Reads a model that `save` or `phex train` wrote.

        A model of `phex train` answers with sets of labels. Its features are numbers in the order of
        `feature_names_in_`, with one column for each category.
        """
        classifier = cls()
        _bundle.read(classifier, folder)
        return classifier
