"""Dropout by a seed: the published numbers of its generator, the share that it promises, and what it depends on."""

import pytest
import torch

from course_lib.kernels import dropout
from course_lib.kernels.dropout import draw_seed, dropout_factors, threshold

SEED = torch.tensor([7])
# From the authors' own file of known answers (Random123, kat_vectors, philox4x32 with 7 rounds).
KNOWN = {
    (0,) * 6: (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48),
    (0xFFFFFFFF,) * 6: (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662),
}


@pytest.mark.parametrize("words", KNOWN)
def test_the_generator_gives_the_numbers_that_its_authors_published(words: tuple[int, ...]) -> None:
    inputs = [torch.tensor([word]) for word in words]
    found = dropout.philox((inputs[0], inputs[1], inputs[2], inputs[3]), (inputs[4], inputs[5]))
    assert tuple(int(word) for word in found) == KNOWN[words]


def test_the_counter_is_the_place_in_the_row_and_the_row() -> None:
    words = dropout._random_words(torch.tensor([0]), torch.empty(2, 5))
    assert tuple(words[0, :4].tolist()) == KNOWN[(0,) * 6]
    place = tuple(torch.tensor([word]) for word in (1, 1, 0, 0))  # the second group of four in the second row
    expected = dropout.philox((place[0], place[1], place[2], place[3]), (torch.tensor([0]), torch.tensor([0])))
    assert words[1, 4] == expected[0]


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_the_share_and_the_mean_that_it_promises(p: float) -> None:
    factors = dropout_factors(SEED, p, torch.empty(400, 500, dtype=torch.float64))
    kept = factors != 0
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.005)  # more than four standard deviations
    assert factors.mean().item() == pytest.approx(1, abs=0.05)
    assert kept.double().mean(dim=0).std() < 3 * (p * (1 - p) / 400) ** 0.5  # no column is favoured
    assert kept.double().mean(dim=1).std() < 3 * (p * (1 - p) / 500) ** 0.5  # no row is


def test_neighbours_rows_and_seeds_have_nothing_to_do_with_each_other() -> None:
    like = torch.empty(500, 512)
    kept = (dropout_factors(SEED, 0.5, like) != 0).double() - 0.5
    others = {
        "next column": kept.roll(1, dims=1),
        "same place in the next group": kept.roll(4, dims=1),
        "next row": kept.roll(1, dims=0),
        "next seed": (dropout_factors(SEED + 1, 0.5, like) != 0).double() - 0.5,
        "seed with other high bits": (dropout_factors(SEED + 2**32, 0.5, like) != 0).double() - 0.5,
    }
    for name, other in others.items():
        correlation = (4 * kept * other).mean().item()
        assert abs(correlation) < 0.01, name  # five standard deviations


@pytest.mark.parametrize("shape", [(6, 7), (7,), (2, 3, 1), (0, 5), (3, 8)])
def test_the_choice_depends_on_seed_shape_and_probability_alone(shape: tuple[int, ...]) -> None:
    like = torch.empty(shape)
    factors = dropout_factors(SEED, 0.5, like)
    assert factors.shape == shape
    assert torch.equal(factors, dropout_factors(SEED, 0.5, torch.empty((*shape, 2))[..., 0]))
    assert torch.equal(factors.bfloat16(), dropout_factors(SEED, 0.5, like.bfloat16()))


def test_leading_dimensions_are_rows() -> None:
    flat = dropout_factors(SEED, 0.5, torch.empty(6, 5))
    assert torch.equal(dropout_factors(SEED, 0.5, torch.empty(2, 3, 5)), flat.view(2, 3, 5))


def test_probabilities_become_thresholds_of_32_bits() -> None:
    assert threshold(0.0) == 0
    assert threshold(0.5) == 2**31
    assert threshold(1 - 1e-12) == 2**32 - 1


def test_a_seed_is_drawn_from_the_numbers_of_the_process() -> None:
    torch.manual_seed(0)
    first, second = draw_seed(SEED), draw_seed(SEED)
    torch.manual_seed(0)
    assert torch.equal(draw_seed(SEED), first)
    assert not torch.equal(first, second)
