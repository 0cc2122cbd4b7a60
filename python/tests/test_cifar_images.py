"""The experiment on CIFAR-100 images: a miniature on generated images, its journal and its table."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

PATH = Path(__file__).resolve().parents[2] / "lab" / "python" / "cifar_images.py"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def lab() -> Iterator[ModuleType]:
    sys.path.insert(0, str(PATH.parent))  # Processes of `--jobs` import the script by its name.
    module = importlib.import_module("cifar_images")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # Networks as small as these are slower with more.
    yield module
    torch.set_num_threads(threads)
    sys.path.remove(str(PATH.parent))


@pytest.fixture(scope="module")
def images(lab: ModuleType) -> object:
    """Six classes under two parents; a class is a colour, with noise."""
    generator = torch.Generator().manual_seed(0)
    colours = torch.randint(0, 255, (6, 3, 1, 1), generator=generator).float()

    def draw(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        classes = torch.arange(count) % 6
        noise = 40.0 * torch.randn(count, 3, 32, 32, generator=generator)
        return (colours[classes] + noise).clamp(0, 255).to(torch.uint8), classes

    names = [f"class {at}" for at in range(6)]
    return lab.Images(*draw(240), *draw(60), names, [f"parent {at // 3}" for at in range(6)])


def small(lab: ModuleType) -> object:
    return lab.Setting(epochs=1, batch=16, width=2, validation=60)


def few(lab: ModuleType) -> tuple[object, ...]:
    """The methods with one or two of their trials."""
    return tuple(
        lab.Method(method.name, method.loss, method.trials[-2:], method.scaled) for method in lab.METHODS
    )


def test_every_method_has_as_many_trials(lab: ModuleType) -> None:
    assert {len(set(method.trials)) for method in lab.METHODS} == {lab.TRIALS}


def test_the_graphs(lab: ModuleType, images: object) -> None:
    hard = lab.relations(images, None)
    assert hard.count_states() == 6
    assert len(hard) == 8
    soft = lab.relations(images, 0.3)
    assert not soft.is_hard
    assert soft.compile().plan.exact


def test_what_is_known(lab: ModuleType, images: object) -> None:
    task = lab.Task(images, 0.75, seed=1, validation=60)
    assert task.is_coarse.sum() == 135
    graph = lab.relations(images, None)
    known = task.targets(graph)
    assert known.eq(1).sum(-1).eq(1).all()
    for row in range(20):
        label = graph.labels[int(known[row].argmax())]
        of = int(images.train_class[row])
        assert label == (f"parent {of // 3} (parent)" if task.is_coarse[row] else f"class {of}")


def test_sums_are_the_relations(lab: ModuleType, images: object) -> None:
    task = lab.Task(images, 0.5, seed=0, validation=60)
    rows = torch.arange(40)
    by_relations = next(m for m in lab.METHODS if m.name == "HEX")
    by_sums = next(m for m in lab.METHODS if m.loss == "sums")
    _, loss, score = lab.objective(task, by_relations, by_relations.trials[0], 16, CPU)
    _, summed, _ = lab.objective(task, by_sums, by_sums.trials[0], 16, CPU)
    logits = torch.randn(40, 6, generator=torch.Generator().manual_seed(2))
    graph = lab.relations(images, None)
    padded = torch.zeros(40, len(graph))
    for at, name in enumerate(images.classes):
        padded[:, graph.index(name)] = logits[:, at]
    torch.testing.assert_close(loss(padded, rows), summed(logits, rows))
    torch.testing.assert_close(score(padded), logits.softmax(-1))


def test_only_the_recipe_scales_inner_scores(lab: ModuleType, images: object) -> None:
    task = lab.Task(images, 0.5, seed=0, validation=60)
    scaled = []
    for method in lab.METHODS:
        for trial in method.trials:
            head, _, _ = lab.objective(task, method, trial, 16, CPU)
            assert head.weight.eq(0.0).all(), "all start at zero"
            if method.loss == "relations" and head.scale.min() < 1.0:
                scaled.append(method.name)
    assert set(scaled) == {"the recipe, hard", "the recipe, soft"}
    assert len(scaled) == 2 * lab.TRIALS


def test_all_of_it_goes_on_after_an_interruption(
    lab: ModuleType, images: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting, methods = small(lab), few(lab)
    path = tmp_path / "runs.jsonl"
    done: list[str] = []
    real = lab.run

    def counted(*given: object) -> dict[str, float]:
        if len(done) == 5:
            raise KeyboardInterrupt
        result = real(*given)
        done.append(given[2].name)
        return result

    monkeypatch.setattr(lab, "run", counted)
    with pytest.raises(KeyboardInterrupt):
        lab.compare(images, setting, [0.8], 2, CPU, lab.Journal(path, {"a": 1}), methods)
    with path.open("a") as file:
        file.write('{"run": "cut of')
    journal = lab.Journal(path, {"a": 1})
    assert len(journal.runs) == 5
    assert "| - |" in lab.summary(journal, setting, [0.8], 2, "here", methods)
    monkeypatch.setattr(lab, "run", real)
    lab.compare(images, setting, [0.8], 2, CPU, journal, methods)
    # Two trials with the first seed, and the better one with the second.
    assert len(journal.runs) == 3 * len(methods)
    assert len(lab.Journal(path, {"a": 1}).runs) == len(journal.runs)
    text = lab.summary(journal, setting, [0.8], 2, "here", methods)
    assert "| - |" not in text
    assert all(f"| {method.name} |" in text for method in methods)
    for entry in journal.runs.values():
        assert 0.0 <= entry["test"] <= 100.0
    together = lab.Journal(tmp_path / "jobs.jsonl", {})
    lab.compare(images, setting, [0.8], 2, CPU, together, methods[:2], jobs=2)
    for name, entry in together.runs.items():
        assert entry["test"] == journal.runs[name]["test"], "two runs at a time are the same runs"
    assert len(together.runs) == 6
    late = lab.Journal(tmp_path / "late.jsonl", {})
    lab.compare(images, setting, [0.8], 2, CPU, late, methods, until=0.0)
    assert not late.runs
    with pytest.raises(SystemExit, match="other settings"):
        lab.Journal(path, {"a": 2})


def test_the_recipe_learns(lab: ModuleType, images: object) -> None:
    setting = lab.Setting(epochs=8, batch=16, width=4, validation=60)
    recipe = next(method for method in lab.METHODS if method.name == "the recipe, hard")
    found = lab.run(images, setting, recipe, lab.Trial(0.05, 0.25), 0.8, 0, CPU)
    assert found["test"] > 50.0, "by chance it would be 17"


def test_the_real_images(lab: ModuleType) -> None:
    folder = lab.data_folder()
    if not (folder / "cifar100_images").is_dir():
        pytest.skip(f"there are no CIFAR-100 images at {folder}; PHEX_DATA may say where they are")
    pytest.importorskip("PIL", reason="decoding the images needs Pillow")
    tile = next(iter(lab._tiles(folder / "cifar100_images" / "test.npz")))
    assert tile.shape == (256, 32, 32, 3)
    assert tile.std() > 30.0
    labels = np.load(folder / "cifar100_images" / "labels_test.npy")
    assert (np.bincount(labels) == 100).all()
