"""Hidden checks and controls of exercise 01.3."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.hidden.transformer import multi_head_attention
from autograder.exercises.transformer import bert_layer as visible
from autograder.exercises.transformer.multi_head_attention import require_same_in_training
from autograder.host import comparison
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.callable import Case, require_outputs
from autograder.host.kinds.module import Build, ModuleAnswer


def _residual(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that zeroed linear maps leave only the residual path: the input itself, or its LayerNorms."""
    sizes = (2, 12, 3, 16)
    for norm_first in (True, False):
        state = visible.draw_state(draw, sizes, torch.float64)
        zeroed = {n: v if "norm" in n else torch.zeros_like(v) for n, v in state.items()}
        hidden = draw.normal(2, 5, 12, dtype=torch.float64)
        formula = visible.formula_of(answer, draw, zeroed, sizes, norm_first=norm_first, category="residual path")
        truth = formula(hidden)
        module = answer.built(Build(sizes, {"norm_first": norm_first}), zeroed)
        reply = module.call(Case((hidden,)))
        if len(reply.outputs) != 1:
            raise CheckFailedError("forward returned more than the one tensor of new tokens.")
        comparison.require_rounded(
            reply.outputs[0],
            truth,
            dtype=torch.float64,
            scale=10.0,
            what=f"the residual path, with norm_first={norm_first},",
        )


def _gradients(answer: ModuleAnswer, draw: Draw) -> None:
    sizes = (2, 8, 2, 12)
    for norm_first in (False, True):
        module, state = visible.built(answer, draw, sizes, norm_first=norm_first, dtype=torch.float64, training=True)
        hidden, cotangent = (draw.normal(2, 3, 8, dtype=torch.float64) for _ in range(2))
        names = [n for n in state if not n.endswith("key.bias")]  # its gradient is only rounding
        reply = module.call(Case((hidden,)), cotangents=[cotangent], wrt=[0], by=names)
        leaves = [hidden.clone().requires_grad_(), *(state[n].clone().requires_grad_() for n in names)]
        weights = {**state, **dict(zip(names, leaves[1:], strict=True))}
        formula = visible.formula_of(answer, draw, weights, sizes, norm_first=norm_first, category="gradients")
        output = formula(leaves[0])
        require_same_in_training(reply.outputs[0], output.detach())
        truths = torch.autograd.grad(output, leaves, cotangent, allow_unused=True, materialize_grads=True)
        for name, found, truth in zip(("the input", *names), reply.gradients, truths, strict=True):
            if found is None and not bool(truth.any()):
                continue  # a mistake that another check counts leaves this parameter out
            if found is None:
                raise CheckFailedError(f"No gradient reaches {name}.")
            scale = 64 * (1 + float(truth.abs().max()))
            comparison.require_rounded(found, truth, dtype=truth.dtype, scale=scale, what=f"the gradient by {name}")


def _sizes(answer: ModuleAnswer, draw: Draw) -> None:
    for sizes in ((1, 7, 1, 3), (3, 10, 5, 129)):
        for dtype in (torch.float64, torch.float32):
            norm_first = draw.chance(0.5)
            module, state = visible.built(answer, draw, sizes, norm_first=norm_first, dtype=dtype)
            formula = visible.formula_of(answer, draw, state, sizes, norm_first=norm_first, category="odd sizes")
            for shape in ((1, 1), (2, 129), (4, 3)):
                case = Case((draw.normal(*shape, sizes[1], dtype=dtype),), label=f"with an input of {shape} tokens")
                reply = module.call(case)
                require_outputs(reply, case, formula, visible.NAMES)
                if reply.mutated:
                    raise CheckFailedError("forward wrote into its input; use hidden = hidden + ..., not +=.")


ANSWERS = Answers(__name__, after=(multi_head_attention.ANSWERS,))

HIDDEN = HiddenPart(
    checks=(
        Check("zeroed parts leave the residual path", "residual path", 1.5, _residual),
        Check("gradients", "gradients", 1, _gradients),
        Check("odd sizes", "odd sizes", 1.5, _sizes),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.edited("parameters only", 1, ("hidden = layer(hidden, mask)", "pass")),
        ANSWERS.edited(
            "dropout in training",
            11,
            ("self.norm_first = norm_first", "self.norm_first = norm_first; self.drop = nn.Dropout(0.1)"),
            ("+ self.attention(hidden, mask)", "+ self.drop(self.attention(hidden, mask))"),
        ),
        ANSWERS.edited(
            "no residual sum of the feed-forward part",
            4.5,
            ("return hidden + self.down(", "return self.down("),
            ("self.feed_forward_norm(hidden + self.down(", "self.feed_forward_norm(self.down("),
        ),
        ANSWERS.edited(
            "norm first, and the normed input is added",
            9,
            (
                "hidden = hidden + self.attention(self.attention_norm(hidden), mask)",
                "hidden = self.attention_norm(hidden); hidden = hidden + self.attention(hidden, mask)",
            ),
        ),
        ANSWERS.edited("every layer is the first one", 9, ("layer(hidden, mask)", "self.layers[0](hidden, mask)")),
    ),
)
