"""Edges that block fusion: the listings are Inductor's, wrong ideas of them are named, and tricks earn nothing."""

from typing import Any

import pytest
import torch

from autograder.exercises import find
from autograder.exercises.hidden.inductor.blocker_hunt import ANSWERS
from autograder.exercises.programs.blocked_programs import known_listings
from autograder.exercises.programs.loop_listings import REASONS, drawn
from autograder.host.draw import Draw
from course_lib.graph import scheduled
from tests.autograder.exercises.judged import judged, messages, reference, said

ID = "09_blocker_hunt"
FIVE = ("reported", "appended", "turned", "spread", "standardised")
APPENDED, TURNED, STANDARDISED = (f"`{name}` fuses as far as it can" for name in ("appended", "turned", "standardised"))
PRECISION = "in double precision, away from zero"


def functions(text: str) -> dict[str, Any]:
    """The functions of an answer of ours, by name."""
    module: dict[str, Any] = {}
    exec("from math import prod\nimport torch\nfrom torch.nn import functional as F\n" + text, module)
    found: dict[str, Any] = module["hunted"]()
    return found


@pytest.mark.parametrize("name", FIVE)
@pytest.mark.parametrize(("rows", "columns"), [(64, 32), (5, 7), (3, 90)])
def test_the_listings_of_the_five_programs_are_inductors(name, rows, columns):
    inputs = (torch.randn(rows, columns), torch.randn(rows))[: 1 + (name == "appended")]
    found = scheduled(functions(ANSWERS.file("as they were", 0).answer)[name], inputs)
    assert found.data() == known_listings(rows, columns)[name].loops, f"torch {torch.__version__}\n{found}"


@pytest.mark.parametrize("seed", range(40))
def test_a_drawn_listing_can_be_read_in_one_way_only(seed):
    draw = Draw(seed, "listing")
    listing = drawn(draw, [draw.choice(REASONS) for _ in range(draw.integer(1, 9))])
    blockers = functions(reference(ID))["blockers"]
    assert {tuple(edge) for edge in blockers(listing.loops)} == listing.edges
    kernels = [loop["kernel"] for loop in listing.loops]
    assert kernels == sorted(kernels)
    assert set(kernels) == set(range(max(kernels) + 1))
    assert len({loop["name"] for loop in listing.loops}) == len(listing.loops)
    assert not listing.fused & {edge[:2] for edge in listing.edges}


def test_drawn_listings_hold_every_reason_and_every_trap():
    listings = [drawn(Draw(seed, "traps"), REASONS) for seed in range(30)]
    assert {reason for listing in listings for *_, reason in listing.edges} == set(REASONS)
    by_name = [({loop["name"]: loop for loop in listing.loops}, listing) for listing in listings]
    pairs = [(loops[a], loops[b], why) for loops, listing in by_name for a, b, why in listing.edges]
    assert any(a["library"] and why == "graph break" for a, _, why in pairs)
    assert any(b["into"] and why == "extern kernel" for _, b, why in pairs)
    assert any(a["reducing"] and why == "mutation" for a, _, why in pairs)
    assert any(loops[b]["into"] for loops, listing in by_name for _, b in listing.fused)


NAMED = [
    ("that edge was fused", ("if a['kernel'] != b['kernel']", "if a is not b")),
    ("the producer comes first", ("(a['name'], b['name'])", "(b['name'], a['name'])")),
    ("never is the same one", ("not a['reducing'] and prod", "prod")),
    ("also those of the loop inside", ("prod(b['over'] + b['reducing'])", "prod(b['over'])")),
    ("writes into memory", ("a['into'] or b['into']", "False")),
    ("never opened", ("a['library'] or b['library']", "a['library'] and not b['into']")),
    ("never saw them together", ("a['graph'] != b['graph']", "False")),
    ("Name each once", ("edges.items()", "[*edges.items()] * 2")),
]


@pytest.mark.parametrize(("words", "change"), NAMED, ids=[n[0] for n in NAMED])
def test_a_wrong_idea_of_an_edge_is_named(words, change):
    texts = [text for seed in (3, 4) for text in only_blockers(reference(ID, change), seed)]
    assert any(words in text for text in texts), texts


def only_blockers(answer: str, seed: int) -> list[str]:
    """What the checks of listings say of an answer."""
    names = [check.name for check in find(ID, hidden=True).checks if check.name.startswith("`blockers`")]
    return list(messages(judged(ID, answer, seed=seed, only=names)).values())


def test_wrong_repairs_are_named():
    text = said(
        ID,
        ("x.shape[-1] ** 0.5", "x.shape[0] ** 0.5"),
        ("cache.shape[1] - 1", "0"),
        ("x.exp().T + 1", "x.exp().reshape(x.shape[1], x.shape[0]) + 1"),
        ("x.relu().amax(-1) - x.relu().amin(-1)", "x.amax(-1) - x.amin(-1)"),
        (", correction=0", ""),
        hidden=False,
    )
    for words in ("the last size is the width", "the last one is meant", "only cuts it", "rectifies it", "correction"):
        assert words in text


def test_who_leaves_too_many_kernels_is_told_how_many_and_why():
    told = messages(
        judged(
            ID,
            reference(
                ID,
                ("torch.select_scatter(cache, k, 1, cache.shape[1] - 1)", "torch.cat([cache[:, :-1], k[:, None]], 1)"),
                ("x.exp().T + 1", "x.exp().T.clone(memory_format=torch.contiguous_format) + 1"),
                ("x.relu().amax(-1)", "x.relu().topk(1).values[:, 0]"),
                (
                    "variance, mean = torch.var_mean(x, correction=0)",
                    "mean = x.mean(); variance = (x - mean).pow(2).mean()",
                ),
            ),
            hidden=False,
        )
    )
    assert "loop for each of its parts" in told[APPENDED]
    assert "makes 2 kernels of it; one is enough" in told[TURNED]
    assert "library's kernel" in told["`spread` fuses as far as it can"]
    assert "makes 3 kernels of it; two are enough" in told[STANDARDISED]


def test_a_program_that_still_writes_into_the_cache_is_refused():
    writing = "(cache.select(1, -1).copy_(k), cache.tanh())[1]"
    answer = reference(ID, ("torch.select_scatter(cache, k, 1, cache.shape[1] - 1).tanh()", writing))
    assert "writes into its input number 0" in messages(judged(ID, answer, only=[APPENDED]))[APPENDED]


def test_a_variance_may_be_the_mean_of_squares_less_the_squared_mean():
    """It loses digits where the mean is large, which exercise 08.2 asks about; here the mean is moderate."""
    answer = reference(
        ID,
        (
            "variance, mean = torch.var_mean(x, correction=0)",
            "mean = x.mean(); variance = (x * x).mean() - mean * mean",
        ),
    )
    assert messages(judged(ID, answer, only=[PRECISION, STANDARDISED])) == {}


HIDING = [
    (
        "in a branch",
        "torch.cond(x.sum() == x.sum(), lambda x: (x.exp(), x.exp().T.contiguous() + 1), "
        "lambda x: (x + 1, x.T.contiguous() - 1), (x,))",
    ),
    ("as a constant", "(x.exp(), torch.ones(8, 6))"),
    ("in one call of the library's", "tuple(torch._foreach_add([x.exp(), x.exp().T.contiguous()], [0.0, 1.0]))"),
]


@pytest.mark.parametrize(("name", "program"), HIDING, ids=[h[0] for h in HIDING])
def test_kernels_cannot_be_hidden(name, program):
    answer = reference(ID, ("(x.exp(), x.exp().T + 1)", program))
    assert TURNED in messages(judged(ID, answer, only=[TURNED]))


def test_changing_how_inductor_counts_in_the_students_worker_changes_nothing():
    cheat = """
import course_lib.graph
import course_lib.graph.loops
from torch._inductor import config

config._post_fusion_custom_pass = lambda nodes: nodes[:1]
course_lib.graph.loops.Scheduled.kernels = property(lambda self: 1)
"""
    answer = cheat + reference(ID, ("x.exp().T + 1", "x.exp().T.contiguous() + 1"))
    assert "makes 2 kernels" in messages(judged(ID, answer, only=[TURNED]))[TURNED]


def test_an_answer_that_guesses_one_reason_for_all_edges_gets_no_listing_right():
    for reason in REASONS:
        assert len(only_blockers(reference(ID, (": reason(a, b)", f": '{reason}'")), 5)) == 4
