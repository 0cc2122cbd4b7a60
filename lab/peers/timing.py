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
    """Best and median seconds after a first call; at most about `budget` seconds
    after it, so that long calls get fewer repetitions.

    The first call is timed apart (compilation); a second one warms up if it fits the budget.
    """
    begin = time.perf_counter()
    result = call()
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    if first < budget:
        call()
    walls: list[float] = []
    cpus: list[float] = []
    while len(walls) < repetitions:
        tick, cpu = time.perf_counter(), time.process_time()
        result = call()
        walls.append(time.perf_counter() - tick)
        cpus.append(time.process_time() - cpu)
        if time.perf_counter() - begin + walls[-1] > budget:
            break
    return result, {
        "first_s": first,
        "best_s": min(walls),
        "median_s": median(walls),
        "repetitions": len(walls),
        "best_cpu_s": min(cpus),  # below the wall time where others use the core
        "cpu_over_wall": sum(cpus) / sum(walls),
    }
