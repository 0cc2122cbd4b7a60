"""One thread, and the time of a call."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import median
from typing import TypeVar

T = TypeVar("T")


def one_thread(cpu: int | None) -> None:
    """Before numpy, torch or jax are imported: one thread, on one core if `cpu` is given."""
    for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    os.environ["NPROC"] = "1"  # XLA's thread pool
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})


def measure(
    call: Callable[[], T], repetitions: int, budget: float
) -> tuple[T, dict[str, float | int]]:
    """Best and median seconds after a first call; at most about `budget` seconds in all.

    The first call is timed apart (compilation); a second one warms up if it fits the budget.
    """
    begin = time.perf_counter()
    result = call()
    first = time.perf_counter() - begin
    if time.perf_counter() - begin + first < budget:
        call()
    walls: list[float] = []
    cpu = time.process_time()
    start = time.perf_counter()
    while len(walls) < repetitions:
        tick = time.perf_counter()
        result = call()
        walls.append(time.perf_counter() - tick)
        if time.perf_counter() - begin + walls[-1] > budget:
            break
    wall = time.perf_counter() - start
    return result, {
        "first_s": first,
        "best_s": min(walls),
        "median_s": median(walls),
        "repetitions": len(walls),
        "cpu_over_wall": (time.process_time() - cpu) / wall,
    }
