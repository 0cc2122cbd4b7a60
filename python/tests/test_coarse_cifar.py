"""The example on coarse labels, with generated rows in place of CIFAR-100, and on a slice of it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

PATH = Path(__file__).resolve().parents[2] / "examples" / "python" / "coarse_cifar.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coarse_cifar", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def generated(example: ModuleType, rows: int = 2000) -> object:
    """Twelve fine classes under three coarse ones, around centres near that of the coarse one."""
    generator = torch.Generator().manual_seed(4)
    coarse_of = torch.arange(12) // 4
    centres = 0.5 * torch.randn(3, 48, generator=generator)[coarse_of]
    centres += torch.randn(12, 48, generator=generator)

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        fine = torch.randint(12, (count,), generator=generator)
        return centres[fine] + 2.0 * torch.randn(count, 48, generator=generator), fine

    return example.Data(
        *draw(rows),
        *draw(rows),
        fine=[f"fine {at}" for at in range(12)],
        coarse=[f"coarse {at}" for at in range(3)],
        coarse_of=coarse_of,
    )


def test_coarse_rows_help(example: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    data = generated(example)
    flags = "--epochs 6 --hidden 32 --seeds 2 --batch 64 --rate 0.005 --fraction 0.95 --dropout 0.2"
    results = example.compare(data, example.arguments(flags.split()))
    assert list(results) == list(example.METHODS)
    by_fine_rows, _, by_relations = results.values()
    for without, with_coarse in zip(by_fine_rows, by_relations, strict=True):
        assert with_coarse["coarse"] > without["coarse"] + 3.0
        # Better than to name the coarse class and guess.
        assert with_coarse["fine"] > 50.0
    assert all(name in example.table(results) for name in example.METHODS)
    assert "seed 2" in capsys.readouterr().out


def test_relations_are_the_sums(example: ModuleType) -> None:
    task = example.Task(generated(example), example.arguments(["--fraction", "0.5"]), seed=1)
    rows = torch.arange(20)
    logits = torch.randn(20, 15, generator=torch.Generator().manual_seed(0))
    logits[:, :3] = 0.0
    torch.testing.assert_close(task.relation_loss(logits, rows), task.summed_loss(logits, rows))
    for by_relations, by_sums in zip(
        task.probabilities(logits, example.METHODS[2]),
        task.probabilities(logits, example.METHODS[1]),
        strict=True,
    ):
        torch.testing.assert_close(by_relations, by_sums)


def test_a_slice_of_the_data(example: ModuleType) -> None:
    folder = example.data_folder()
    if not folder.is_dir():
        pytest.skip(f"there are no CIFAR-100 features at {folder}; PHEX_DATA may say where they are")
    data = example.load(folder)
    assert len(example.relations(data)) == 120
    assert example.relations(data).count_states() == 100
    part = torch.randperm(len(data.train), generator=torch.Generator().manual_seed(0))[:5000]
    data.train, data.train_fine = data.train[part], data.train_fine[part]
    data.test, data.test_fine = data.test[::5], data.test_fine[::5]
    flags = "--epochs 6 --hidden 64 --seeds 1 --rate 0.005 --batch 128"
    by_fine_rows, _, by_relations = example.compare(data, example.arguments(flags.split())).values()
    assert by_relations[0]["coarse"] > by_fine_rows[0]["coarse"] + 5.0
    assert by_relations[0]["fine"] > 20.0
