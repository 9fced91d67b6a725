"""Drawn encoders share no name and no number with the one that students see, and all have the same counters."""

import itertools
import json
from pathlib import Path

import pytest
import torch
from torch import nn

from autograder.exercises.capstone.optimise_step import LAYER
from autograder.host.checks.drawn_encoder import drawn_encoder
from autograder.host.checks.known_by_heart import shown_layer
from autograder.host.draw import Draw
from autograder.host.kinds.schedule_models import ACTIVATIONS, Encoder
from course_lib import models
from course_lib.graph import cost, saved_for_backward
from tests.drawn import chance

NOTEBOOK = Path(__file__).parents[4] / "notebooks" / "17_capstone" / "17_capstone.ipynb"
SEEDS = chance("drawn encoders").sample(range(10**9), 40)
PYTORCHS = {"weight", "bias"}


def drawn(seed: int) -> Encoder:
    return Encoder(**{**drawn_encoder(Draw(seed, "drawn")), **LAYER.arguments})


def words_of(module: nn.Module) -> set[str]:
    names = (name for pair in (module.named_modules(), module.named_parameters()) for name, _ in pair)
    return {word for name in names for word in name.split(".") if word and not word.isdigit()} - PYTORCHS


def numbers_of(module: nn.Module) -> tuple[set[float], set[float]]:
    parts = list(module.modules())
    return {p.eps for p in parts if isinstance(p, nn.LayerNorm)}, {p.p for p in parts if isinstance(p, nn.Dropout)}


@pytest.mark.parametrize("known", [shown_layer, lambda: Encoder(eps=1e-5, dropout=0.1)], ids=["shown", "default"])
def test_no_name_and_no_number_is_known(known):
    names, (eps, p) = words_of(known()), numbers_of(known())
    for seed in SEEDS:
        found = drawn(seed)
        assert not names & words_of(found), seed
        assert not eps & numbers_of(found)[0], seed
        assert not p & numbers_of(found)[1], seed


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_the_part_of_an_activation_has_another_name(activation):
    arguments = {**drawn_encoder(Draw(SEEDS[0], "drawn")), **LAYER.arguments, "activation": activation}
    assert not words_of(Encoder(activation=activation)) & words_of(Encoder(**arguments))


def test_the_shown_layer_is_the_one_of_the_notebook():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    (line,) = [line for cell in cells for line in cell["source"] if line.startswith("layer = TransformerLayer(")]
    assert str(eval(line.removeprefix("layer = "), vars(models))) == str(shown_layer())


def test_every_part_has_another_name_in_another_draw():
    most = max(len(words_of(drawn(one)) & words_of(drawn(other))) for one, other in itertools.pairwise(SEEDS))
    assert most <= 3  # of 15: some of the 1,320 names of three syllables come again


def test_eps_p_and_places_differ_from_draw_to_draw():
    found = [drawn_encoder(Draw(seed, "drawn")) for seed in SEEDS]
    for key, least in (("eps", 5), ("dropout", 4), ("residual_first", 2), ("idle", 8)):
        assert len({one[key] for one in found}) >= least, key
    assert all(sorted(one["residual_first"]) == [False, True] for one in found)


def test_no_counter_depends_on_what_is_drawn():
    def counters(encoder: nn.Module) -> tuple[int, ...]:
        inputs = torch.randn(2, 6, 32), torch.zeros(2, 1, 1, 6)
        encoder.train()
        forward, saved = cost(encoder, inputs), saved_for_backward(encoder, inputs).total_bytes
        step = cost(lambda *given: encoder(*given).square().mean().backward(), inputs)
        return forward.launches, forward.bytes_moved, step.launches, step.bytes_moved, saved

    known = counters(Encoder(**LAYER.arguments, dropout=0.1, eps=1e-5))
    assert [counters(drawn(seed)) for seed in SEEDS[:4]] == [known] * 4
