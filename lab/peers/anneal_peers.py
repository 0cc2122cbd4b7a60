"""dwave-samplers on the problems of `lab bench anneal`: anneal_peers.py PROBLEMS.json RESULTS.json

One thread. Reads until a seed reaches the optimum or its time is up:

- simulated annealing runs calls of many reads; a seed's time is the number of reads up to the first
  that ends in the optimum, times the time of one read, so what Python does once a call weighs little;
- tabu search stops at the optimum by itself (`energy_threshold`); a seed's time is that of the call,
  less the time of the same call when any energy will do, which is what Python does around it.

Both favour the peer: phex is charged for everything between the problem and the answer.
"""

import json
import statistics
import sys
import time

import dimod
from dwave.samplers import SimulatedAnnealingSampler, TabuSampler

READS = 16
TABU_READ_MILLISECONDS = 20  # the default of TabuSampler


def simulated(bqm, optimum, seed, limit, sweeps):
    """Seconds to the optimum (None when out of time), and of how many reads how many reached it."""
    spent, reads, hits, found, best = 0.0, 0, 0, None, float("inf")
    call = 0
    while found is None and spent < limit:
        start = time.perf_counter()
        answer = SimulatedAnnealingSampler().sample(
            bqm, num_reads=READS, num_sweeps=sweeps, seed=seed * 100_000 + call + 1
        )
        seconds = time.perf_counter() - start
        good = [energy <= optimum + 1e-6 for energy in answer.record.energy]
        if any(good):
            found = spent + seconds * (good.index(True) + 1) / READS
        best = min(best, float(answer.record.energy.min()))
        spent += seconds
        reads += READS
        hits += sum(good)
        call += 1
    return found, reads, hits, best


def tabu(bqm, optimum, seed, limit, overhead):
    start = time.perf_counter()
    answer = TabuSampler().sample(
        bqm, num_reads=1, timeout=int(1000 * limit), energy_threshold=optimum, seed=seed + 1
    )
    seconds = time.perf_counter() - start
    best = float(answer.record.energy.min())
    return (max(seconds - overhead, 1e-6) if best <= optimum + 1e-6 else None), best


def tabu_overhead(bqm):
    times = []
    for seed in range(5):
        start = time.perf_counter()
        TabuSampler().sample(bqm, num_reads=1, energy_threshold=1e18, seed=seed)
        times.append(time.perf_counter() - start)
    return min(times)


def row(instance, method, times, limit, success, best):
    return {
        "family": instance["family"],
        "instance": instance["name"],
        "method": method,
        "solved": sum(time is not None for time in times),
        "seeds": len(times),
        "success": success,
        "median_seconds": statistics.median_high([limit if t is None else t for t in times]),
        "gap": best - instance["optimum"],
    }


def main(problems, results):
    with open(problems, encoding="utf-8") as file:
        given = json.load(file)
    limit, rows = given["limit"], []
    for instance in given["instances"]:
        bqm = dimod.BinaryQuadraticModel("BINARY")
        bqm.add_linear_from(enumerate(instance["linear"]))
        bqm.add_quadratic_from(map(tuple, instance["pairs"]))
        optimum = instance["optimum"]
        for sweeps in given["sweeps"]:
            runs = [simulated(bqm, optimum, s, limit, sweeps) for s in range(given["seeds"])]
            success = sum(run[2] for run in runs) / sum(run[1] for run in runs)
            best = min(run[3] for run in runs)
            name = f"dwave simulated, {sweeps} sweeps"
            rows.append(row(instance, name, [run[0] for run in runs], limit, success, best))
        overhead = tabu_overhead(bqm)
        runs = [tabu(bqm, optimum, s, limit, overhead) for s in range(given["seeds"])]
        reads = TabuSampler().sample(bqm, num_reads=16, timeout=TABU_READ_MILLISECONDS, seed=7)
        success = sum(energy <= optimum + 1e-6 for energy in reads.record.energy) / 16
        best = min(run[1] for run in runs)
        rows.append(row(instance, "dwave tabu", [run[0] for run in runs], limit, success, best))
    with open(results, "w", encoding="utf-8") as file:
        json.dump(rows, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
