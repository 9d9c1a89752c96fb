"""Rectangles in noisy images: what is drawn, what the networks know, and that they learn."""

import doctest
from itertools import product

import numpy as np
import pytest
from paper import rectangles as study
from paper.rectangles import KNOWLEDGE, NOISES, SHAPES, START, STRUCTURE, Cell, Noise, Rectangle, Result
from tests.helpers import close


def test_examples_in_docstrings():
    found = doctest.testmod(study)
    assert found.attempted
    assert not found.failed


def test_images_are_repeatable_and_a_fifth_is_clean():
    images, again = (study.draw(100, NOISES["medium"], (7,)) for _ in range(2))
    np.testing.assert_array_equal(images.black, again.black)
    areas = images.labels("height") + 1, images.labels("width") + 1
    clean = sum(
        Rectangle(*r).of(black).all() and black.sum() == h * w
        for r, black, h, w in zip(images.rectangles.tolist(), images.black, *areas, strict=True)
    )
    assert clean == 20
    np.testing.assert_array_equal(images.labels("shape") == SHAPES.index("tall"), areas[0] > areas[1])


def test_noise_is_bounded_as_published():
    rng, rectangle = np.random.default_rng(0), Rectangle(2, 3, 3, 5)
    for _ in range(50):
        removed = 15 - rectangle.of(study.picture(rectangle, Noise(removal=9), rng)).sum()
        assert 0 <= removed <= 2
        others = study.picture(rectangle, Noise(rectangles=3), rng)
        assert rectangle.of(others, margin=1).sum() == 15  # none touches it
        assert others.sum() <= 15 + 3 * 7
        assert study.picture(rectangle, Noise(pixels=90), rng).sum() == 15 + 14


@pytest.mark.parametrize("vertical", [False, True])
def test_pairs_lie_in_one_direction(vertical):
    rng = np.random.default_rng(0)
    image = study.picture(Rectangle(0, 0, 1, 3), Noise(pairs=9, vertical=vertical), rng)
    places = np.argwhere(image)[3:]
    assert (places[1] - places[0]).tolist() == ([1, 0] if vertical else [0, 1])
    assert study.picture(Rectangle(0, 0, 1, 2), Noise(pairs=9, vertical=vertical), rng).sum() == 2


def test_the_network_knows_what_a_rectangle_is():
    """Its answers are those of a sum over all rectangles, squares among them."""
    side = 3
    images = study.draw(5, Noise(pixels=2), (1,), side)
    expected = np.zeros((5, 2))
    for row, col in product(range(side), repeat=2):
        for height, width in product(range(1, side - row + 1), range(1, side - col + 1)):
            inside = np.zeros((side, side), bool)
            Rectangle(row, col, height, width).of(inside)[:] = True
            p = np.where(images.black == inside, 0.9, 0.1).prod(axis=(1, 2)) / (side - row) / (side - col)
            expected[:, 0] += p * (1 + np.sign(width - height)) / 2
            expected[:, 1] += p * (1 + np.sign(height - width)) / 2
    found = study.compiled(KNOWLEDGE, side).posterior(study.evidence(images))
    close(found, expected / expected.sum(axis=1, keepdims=True))


def test_numbers_to_learn_are_as_many_as_published():
    known, unknown = study.network(study.RANDOM), study.network(STRUCTURE)
    places = sum(int(np.isnan(known.table(node)).sum()) for node in ("row", "col", "height", "width"))
    assert places - 2 + known.table("0,0").size == 136  # in the last row, and column, there is but one size
    assert sum(unknown.table(node).size for node in unknown) == 5220
    torch = pytest.importorskip("torch")
    assert sum(weights.numel() for weights in study.cnn().parameters()) == 1642
    assert torch.is_tensor(study.inputs(study.draw(1, Noise(), (0,))))


@pytest.mark.slow
def test_few_images_are_enough_with_knowledge():
    images, judged = study.draw(25, NOISES["medium"], (1,)), study.draw(300, NOISES["medium"], (2,))
    found = study.by_network(KNOWLEDGE, images, judged, seed=0)
    assert (found == judged.labels("shape")).mean() > 0.93


def test_a_neural_network_learns_clean_images():
    pytest.importorskip("torch")
    images = study.draw(200, Noise(), (1,))
    assert (study.by_cnn(images, images, seed=0, batches=60) == images.labels("shape")).mean() > 0.8


def test_the_report_has_the_best_and_the_mean(tmp_path, monkeypatch, capsys):
    wanted = [Cell(START, 25, "medium", "medium", run) for run in range(2)]
    found = [Result(0.75, 1.0), Result(0.85, 2.0)]
    monkeypatch.setattr(study.cells, "run", lambda cells, *_: dict(zip(cells, found, strict=True)))
    study.study(tmp_path, wanted, 1)
    assert "85.0  80.0   75.0  1.5" in capsys.readouterr().out
    assert len({cell.file for cell in study.all_cells()}) == len(study.all_cells())
