"""Hidden checks and controls of exercise 01.5."""

from __future__ import annotations

import torch

from autograder.exercises.transformer import train as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.module import ModuleAnswer


def _held_out(answer: ModuleAnswer, draw: Draw) -> None:
    """Text of the same language that the answer never saw, guessed by our model with its weights."""
    run = visible.one_run(answer, draw)
    found = visible.model_loss(run.state, run.text.held_out_hidden, run.text.held_out_labels)
    baseline = run.text.unigram_nats()
    if not found < baseline - visible.CLEARLY_NATS:
        raise CheckFailedError(
            f"On text that it never saw, the model loses {found:.2f} nats a token, and the baseline {baseline:.2f}."
        )


def _again(answer: ModuleAnswer, draw: Draw) -> None:
    """The same text again: the same seed gives the same weights, another seed others, which have learned as well."""
    run = visible.one_run(answer, draw)
    other = (run.seed + draw.integer(1, visible.LARGEST_SEED)) % (visible.LARGEST_SEED + 1)
    same, others = (visible.trained(answer, run.text, seed).parameters for seed in (run.seed, other))
    loss = visible.model_loss(others, run.text.held_out_hidden, run.text.held_out_labels)
    if not loss < run.text.unigram_nats() - visible.CLEARLY_NATS:
        raise CheckFailedError("The model did not learn with another seed as well.")
    if any(not torch.equal(run.state[name], same[name]) for name in same):
        raise CheckFailedError(
            "Two runs with the same seed gave other weights; call torch.manual_seed(seed) before the model is made."
        )
    if all(torch.equal(run.state[name], others[name]) for name in others):
        raise CheckFailedError("A run with another seed gave the same weights.")


def _moved(answer: ModuleAnswer, draw: Draw) -> None:
    """Every part of the model was trained: weights that begin at 0 or 1 are there no more."""
    run = visible.one_run(answer, draw)
    for name, value in run.state.items():
        if not name.endswith(("bias", "norm.weight")) or "key.bias" in name:  # whose gradient is rounding alone
            continue
        if float((value - float("norm.weight" in name)).abs().max()) < 1e-4:
            raise CheckFailedError(f"`{name}` is as it was before training.")


REFERENCE = """
def train(hidden, labels, seed, folder, sizes):
    torch.manual_seed(seed)
    model = MaskedLanguageModel(TransformerConfig(**sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with SummaryWriter(folder) as writer:
        writer.add_graph(model, hidden[0])
        for step, (tokens, wanted) in enumerate(zip(hidden, labels), start=1):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
            optimizer.zero_grad()
            loss.backward()
            length = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            writer.add_scalar("loss/train", loss.item(), step)
            writer.add_scalar("gradient_length", length.item(), step)
    return model
"""
NOT_CALLED = "the grader takes the weights and never calls the module"
SPOILT_OUTPUTS = (
    "zeros",
    "ones",
    "copy of an input",
    "previous output",
    "first output, for ever",
    "wrong in the first output only",
    "wrong in the last output only",
    "wrong in one element",
    "NaN",
    "one precision lower",
    "scalar",
    "one dimension more",
    "another dtype",
    "one output more",
    "without a gradient",
    "writes into an input",
    "a clone",
)
UNTRAINED = REFERENCE.replace("            optimizer.step()\n", "")
LATE_SEED = REFERENCE.replace("    torch.manual_seed(seed)\n", "").replace(
    "    with Summ", "    torch.manual_seed(seed)\n    with Summ"
)

HIDDEN = HiddenPart(
    checks=(
        Check("held-out text", "held-out loss", 2, _held_out),
        Check("runs again, with the same seed and another", "seeds", 1.8, _again),
        Check("every weight was trained", "weights", 1, _moved),
    ),
    controls=(
        Control("reference", REFERENCE, 12),
        Control("without a step of the optimiser", UNTRAINED, 5.2),
        Control("seeded too late", LATE_SEED, 10.2),
    ),
    right_here=dict.fromkeys(SPOILT_OUTPUTS, NOT_CALLED),
    equivalent={
        "line 5: torch.optim.AdamW(model.parameters(), lr=0.01) -> torch.optim.AdamW(model.parameters())": "slower, "
        "but it learns",
        "line 7: 0 -> 1": "any batch shows the graph",
        "line 8: 1 -> 2": "steps may be counted from anywhere",
        "line 8: enumerate(zip(hidden, labels), start=1) -> enumerate(zip(hidden, labels))": "as above",
        "line 12: 1.0 -> 2.0": "how far gradients are clipped is free",
        "line 14: 'loss/train' -> 'loss/train_'": "names of scalars are free",
        "line 15: 'gradient_length' -> 'gradient_length_'": "names of scalars are free",
    },
)
