"""The other side of `tests/behaviour/dimod.rs`, with the real dimod and dwave-samplers.

Reads the models that phex wrote into FOLDER, compares energies, and leaves models and samples of its
own for phex to read. FOLDER/states.json holds states and their energies by phex.
"""

import csv
import json
import pathlib
import sys

import dimod
import numpy
from dimod.serialization import coo
from dwave.samplers import SimulatedAnnealingSampler


def close(found, expected, what):
    if not numpy.allclose(found, expected, rtol=1e-9, atol=1e-9):
        sys.exit(f"{what}: {found} is not {expected}")


def write_table(path, samples):
    """As `samples.to_pandas_dataframe().to_csv()`, without pandas."""
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *samples.variables, "energy", "num_occurrences"])
        for number, row in enumerate(samples.record):
            writer.writerow([number, *row.sample, row.energy, row.num_occurrences])


def main(folder):
    asked = json.loads((folder / "states.json").read_text())
    names = asked["names"]
    spins = 2 * numpy.array(asked["states"], dtype=numpy.int8) - 1
    energies = numpy.array(asked["energies"])

    # What phex wrote.
    with open(folder / "phex.bqm.json") as file:
        model = dimod.BinaryQuadraticModel.from_serializable(json.load(file))
    if list(model.variables) != names:
        sys.exit(f"the names are {list(model.variables)}, not {names}")
    close(model.energies((spins, names)), energies, "energies of the BQM")
    with open(folder / "phex.coo") as file:
        numbered = coo.load(file)
    if numbered.vartype is not dimod.SPIN or sorted(numbered.variables) != list(range(len(names))):
        sys.exit(f"the COO file is {numbered}")
    found = numbered.energies((spins, list(range(len(names))))) + asked["offset"]
    close(found, energies, "energies of the COO")

    # What dimod writes: spins and 0/1, names of every type, and its COO with six digits.
    binary = model.change_vartype(dimod.BINARY, inplace=False)
    odd = dimod.BinaryQuadraticModel({"a": 1.5, ("t", 1): -2}, {("a", ("t", 1)): 0.25}, 3, "BINARY")
    for name, written in [("spin", model), ("binary", binary), ("odd", odd)]:
        (folder / f"{name}.bqm.json").write_text(json.dumps(written.to_serializable()))
    rounded = dimod.BinaryQuadraticModel(
        {v: round(b, 6) for v, b in numbered.linear.items()},
        {(u, v): round(b, 6) for (u, v), b in numbered.quadratic.items()},
        0,
        "SPIN",
    )
    for name, written in [("spin", rounded), ("binary", rounded.change_vartype("BINARY", inplace=False))]:
        with open(folder / f"{name}.coo", "w") as file:
            coo.dump(written, file, vartype_header=True)
        with open(folder / f"{name}.coo") as file:
            values = coo.load(file).energies
        states = spins if name == "spin" else (spins + 1) // 2
        (folder / f"{name}.coo.energies").write_text(
            json.dumps(values((states, list(range(len(names))))).tolist())
        )

    # Samples of an annealer, in every form.
    samples = SimulatedAnnealingSampler().sample(model, num_reads=20, num_sweeps=50, seed=7)
    (folder / "packed.json").write_text(json.dumps(samples.to_serializable()))
    (folder / "plain.json").write_text(json.dumps(samples.to_serializable(pack_samples=False)))
    write_table(folder / "spins.csv", samples.aggregate())
    write_table(folder / "bits.csv", samples.change_vartype(dimod.BINARY, inplace=False))
    by_number = SimulatedAnnealingSampler().sample(numbered, num_reads=5, num_sweeps=50, seed=7)
    (folder / "numbered.json").write_text(json.dumps(by_number.to_serializable()))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
