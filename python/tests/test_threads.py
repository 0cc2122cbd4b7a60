"""Threads and processes: the same bits, no waiting for the interpreter, no hanging after a fork."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from graphs import named, random_rows

import phex

MODELS = {
    "family": named()["soft-tree"].compile(),
    "junction": named()["dag"].compile("junction"),
    "gibbs": named()["dag"].compile("gibbs", sweeps=20, chains=32),
    "lbp": named()["dag"].compile("lbp"),
}
PATIENCE = 60
"""Seconds after which something hangs."""


@pytest.fixture(autouse=True)
def _as_many_threads_as_before():
    yield
    phex.set_threads(None)


def answers(model: phex.Model, rows: int = 200) -> list[np.ndarray]:
    scores, known = random_rows(model.graph, rows, seed=1)
    losses, gradient = model.loss_and_grad(scores, known)
    found = [
        model.marginals(scores),
        model.marginals(scores.astype(np.float32), known),
        losses,
        gradient,
    ]
    if model.plan.exact:
        found += [model.map(scores), model.sample(scores[:20], 10, seed=5)]
    return found


def same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("method", MODELS)
def test_the_number_of_threads_does_not_matter(method: str) -> None:
    found = []
    for count in (1, 2, 5, None):
        phex.set_threads(count)
        assert phex.threads() == count or count is None
        found.append(answers(MODELS[method]))
    for other in found[1:]:
        same(found[0], other)


def test_no_threads_are_refused() -> None:
    before = phex.threads()
    with pytest.raises(phex.InputError, match="0 threads: give 1 or more, or None"):
        phex.set_threads(0)
    assert phex.threads() == before >= 1


@pytest.mark.parametrize("method", MODELS)
def test_python_threads_get_the_same_bits(method: str) -> None:
    model = MODELS[method]
    expected = answers(model)
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: answers(model), range(24)):
            same(expected, found)


def test_threads_can_be_set_while_others_compute() -> None:
    model = MODELS["junction"]
    expected = answers(model)
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(answers, model) for _ in range(16)]
        for count in (1, 2, 3, None, 1, 2):
            phex.set_threads(count)
        for run in runs:
            same(expected, run.result(PATIENCE))


def steps_beside(call: Callable[[], object]) -> int:
    """How many steps another Python thread makes while this one is in a call.

    Threads do not take the interpreter lock from each other here: the other one runs only when this one
    gives it away.
    """
    counter, started, finished = [0], threading.Event(), threading.Event()

    def count() -> None:
        started.set()
        while not finished.is_set():
            counter[0] += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    other = threading.Thread(target=count)
    other.start()
    try:
        assert started.wait(PATIENCE)
        sys.setswitchinterval(PATIENCE)
        before = counter[0]
        call()
        return counter[0] - before
    finally:
        sys.setswitchinterval(interval)
        finished.set()
        other.join(PATIENCE)


def test_the_interpreter_goes_on_during_inference() -> None:
    model = named()["dag"].compile("gibbs", sweeps=2000, chains=64)
    scores = np.zeros((32, len(model)))
    numbers = range(3_000_000)
    # One step is enough: without giving the lock away there is none. On a busy machine there may be few.
    assert steps_beside(lambda: sum(numbers)) == 0, "sum() does not give the lock away"
    assert steps_beside(lambda: model.marginals(scores)) > 0
    exact = MODELS["junction"]
    many = np.zeros((20_000, len(exact)))
    assert steps_beside(lambda: [exact.marginals(many) for _ in range(10)]) > 0
    assert steps_beside(lambda: [exact.map(many) for _ in range(10)]) > 0


def child_answers(model: phex.Model, pipe) -> None:
    pipe.send([array.tobytes() for array in answers(model)])
    pipe.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["family", "junction", "gibbs"])
def test_a_forked_process_computes(method: str) -> None:
    model = MODELS[method]
    phex.set_threads(2)
    expected = [array.tobytes() for array in answers(model)]
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        here, there = context.Pipe()
        child = context.Process(target=child_answers, args=(model, there))
        child.start()
        try:
            assert here.poll(PATIENCE), "the child hangs"
            assert here.recv() == expected
            child.join(PATIENCE)
            assert child.exitcode == 0
        finally:
            if child.is_alive():
                child.kill()
                child.join()
    assert [array.tobytes() for array in answers(model)] == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_of_a_fork_can_change_its_threads() -> None:
    model = MODELS["junction"]
    expected = answers(model)

    def compute() -> bool:
        phex.set_threads(3)
        return all(np.array_equal(a, b) for a, b in zip(answers(model), expected, strict=True))

    child = os.fork()
    if child == 0:
        # No pytest in here: whatever happens, the process ends.
        code = 1
        try:
            signal.alarm(PATIENCE)
            grandchild = os.fork()
            if grandchild == 0:
                code = 0 if compute() else 3
            else:
                _, status = os.waitpid(grandchild, 0)
                code = 0 if status == 0 and compute() else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def work(model: phex.Model) -> list[np.ndarray]:
    return answers(model, rows=20)


def test_models_go_to_other_processes() -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        for model in MODELS.values():
            same(pool.submit(work, model).result(PATIENCE), answers(model, rows=20))


@pytest.mark.parametrize("method", MODELS)
def test_models_are_pickled_with_their_options(method: str) -> None:
    model = MODELS[method]
    again = pickle.loads(pickle.dumps(model))
    assert again.graph == model.graph
    assert again.plan.method == model.plan.method
    same(answers(model), answers(again))
