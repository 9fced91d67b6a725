"""Hidden checks and controls of exercises 17.2 to 17.4."""

from autograder.exercises.capstone.optimise_step import LAYER
from autograder.exercises.hidden.answer_files import Answers, edited
from autograder.host.checks.training_step import Step, cheaper
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)
OWN = ANSWERS.file("an operator of its own", 75)
LONGER = Step(
    "of one layer with longer sequences",
    LAYER.arguments,
    {"kernels": 23, "launches": 58, "bytes_moved": 3_346_368, "saved_bytes": 356_368},
    sequence=48,
)
VARIANTS = (
    Step(
        "of two layers",
        {**LAYER.arguments, "layers": 2},
        {"kernels": 46, "launches": 115, "bytes_moved": 1_527_152, "saved_bytes": 143_392},
    ),
    Step(
        "with the residual first",
        {**LAYER.arguments, "residual_first": True},
        {"kernels": 23, "launches": 58, "bytes_moved": 325_816, "saved_bytes": 24_432},
        sequence=7,
    ),
    Step(
        "with ReLU",
        {**LAYER.arguments, "activation": "relu", "width": 16, "heads": 2},
        {"kernels": 23, "launches": 58, "bytes_moved": 518_144, "saved_bytes": 46_096},
        batch=3,
    ),
)
"""The counters of each are those of the worked routes, which agree."""
IN_KERNELS = (
    ("no gradient of the bias", ("        by_bias += tl.sum(tl.where(inside, by_x, 0.0), axis=0)[None, :]\n", "")),
    ("no mask in the gradient of the bias", ("tl.where(inside, by_x, 0.0)", "tl.where(inside, by_h, 0.0)")),
    (
        "gradients of weight and shift swapped",
        (
            "return (by_x, by_bias, by_residual, by_weight, by_shift)",
            "return (by_x, by_bias, by_residual, by_shift, by_weight)",
        ),
    ),
    ("a mask for the columns", ("tl.rand(tl.load(seed_ptr), at)", "tl.rand(tl.load(seed_ptr), at * 0 + column)")),
    ("the mask of seed 0", ("tl.rand(tl.load(seed_ptr), at)", "tl.rand(0, at)")),
    ("an inverted mask", (">= p", "< p")),
    ("kept and not divided", ("branch / (1 - p), 0.0), keep", "branch, 0.0), keep")),
    ("eps of its kernel left out", (" / columns + eps)", " / columns)")),
    (
        "the mean along the wrong axis",
        ("h - tl.sum(h, axis=1)[:, None] / columns", "h - tl.sum(h, axis=0)[None, :] / columns"),
    ),
    ("no residual in its kernel", ("tl.load(residual_ptr + at, mask=inside, other=0.0) + tl.where", "tl.where")),
)
"""Likely mistakes in the kernels of an operator of its own, as edits of that answer."""
SAVED_MASK = (
    (
        "    y = torch.empty_like(x)\n",
        "    y = torch.empty_like(x)\n    mask = torch.empty_like(x, dtype=torch.int8)\n",
    ),
    ("seed, y, rows", "seed, y, mask, rows"),
    ("    return y\n", "    return (y, mask)\n"),
    ("seed_ptr, y_ptr, rows", "seed_ptr, y_ptr, mask_ptr, rows"),
    ("    h, _ = summed(", "    h, keep = summed("),
    (
        "    normed, _ = normalised(",
        "    tl.store(mask_ptr + at, keep.to(tl.int8), mask=inside)\n    normed, _ = normalised(",
    ),
    (
        "p: float, eps: float, seed):\n    columns = x.shape[-1]\n    rows = x.numel() // columns\n    by_x",
        "p: float, eps: float, seed, mask):\n    columns = x.shape[-1]\n    rows = x.numel() // columns\n    by_x",
    ),
    ("residual, weight, seed), (by_x", "residual, weight, seed, mask), (by_x"),
    ("weight_ptr, seed_ptr = given", "weight_ptr, seed_ptr, mask_ptr = given"),
    ("        normed, rstd", "        keep = tl.load(mask_ptr + at, mask=inside, other=0) != 0\n        normed, rstd"),
    ("end_forward, end_backward)", "end_forward, end_backward, keeps=('mask',))"),
)
"""Forward stores the mask, and backward reads it."""
ATOMIC = (
    (
        "torch.empty_like(bias), torch.empty_like(bias), torch.empty_like(bias)",
        "torch.zeros_like(bias), torch.zeros_like(bias), torch.zeros_like(bias)",
    ),
    ("end_backward_kernel[1,]", "end_backward_kernel[triton.cdiv(rows, 16),]"),
    (
        "for first in range(0, rows, ROWS):",
        "for first in range(tl.program_id(0) * ROWS, tl.program_id(0) * ROWS + 1, ROWS):",
    ),
    ("tl.store(by_bias_ptr +", "tl.atomic_add(by_bias_ptr +"),
    ("tl.store(by_weight_ptr +", "tl.atomic_add(by_weight_ptr +"),
    ("tl.store(by_shift_ptr +", "tl.atomic_add(by_shift_ptr +"),
)
"""Several programs of backward add to memory that three more launches fill with zeros."""
TRUE_OR_FALSE = (
    "    gm.graph.eliminate_dead_code()\n",
    "    output = gm.graph.output_node()\n"
    "    with gm.graph.inserting_before(output):\n"
    "        output.args = (gm.graph.call_function(operator.gt, (output.args[0], 0.0)),)\n"
    "    gm.graph.eliminate_dead_code()\n",
)
NOTHING_LEFT = """
def optimise(gm):
    output = next(iter(gm.graph.find_nodes(op="output")))
    output.args = (next(iter(gm.graph.find_nodes(op="placeholder"))),)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm
"""

HIDDEN = HiddenPart(
    checks=(
        Check("longer sequences", "unseen variant", 10, cheaper((LONGER,), gate=LAYER)),
        Check("three variants of the model", "unseen variant", 20, cheaper(VARIANTS, gate=LAYER)),
    ),
    controls=(
        ANSWERS.reference(75),
        *ANSWERS.styles(75),
        OWN,
        *(Control(name, edited(OWN.answer, edit), 0) for name, edit in IN_KERNELS),
        Control("a mask that its operator saves", edited(OWN.answer, *SAVED_MASK), 75, below=True),
        Control("sums by atomic operations", edited(OWN.answer, *ATOMIC), 75, below=True),
        Control(
            "no other= where it matters",
            edited(OWN.answer, (", mask=inside, other=0.0)\n        g = ", ", mask=inside)\n        g = ")),
            45,
            trap="Kernels of your own also get rows that fill no block.",
        ),
        Control(
            "PyTorch in a launcher",
            edited(OWN.answer, ("    y = torch.empty_like(x)\n", "    y = torch.layer_norm(x, (columns,))\n")),
            0,
        ),
        Control("its own operator, and an output that is true or false", edited(OWN.answer, TRUE_OR_FALSE), 0),
        Control("unchanged", "def optimise(gm):\n    return gm\n", 0),
        Control("cheap and wrong", NOTHING_LEFT, 0),
        ANSWERS.edited("dropout is gone", 0, ("modules[drop.target].p,", "0.0,")),
        ANSWERS.edited("dropout is off", 0, ("modules[drop.target].training", "False")),
        ANSWERS.edited("no bias of the norm", 0, ("weight, shift, *rest", "weight, bias, *rest")),
        ANSWERS.edited("an eps by heart", 0, ("modules[norm.target].eps)", "1e-12)")),
        ANSWERS.edited("a p by heart", 0, ("modules[drop.target].p,", "0.1,")),
        ANSWERS.edited("names by heart", 0, ("if of(node, nn.LayerNorm)]", "if str(node.target).endswith('_norm')]")),
        ANSWERS.edited(
            "modules by heart",
            0,
            ("for norm in [node for node", "gm.get_submodule('attention_norm')\n    for norm in [node for node"),
        ),
        ANSWERS.edited(
            "one end of each layer",
            75,
            (
                "or (not dropped)",
                "or not dropped or modules[dropped[0].args[0].target].in_features == len(modules[norm.target].weight)",
            ),
            below=True,
        ),
        ANSWERS.edited("no residual", 0, ("(product, bias, residual,", "(product, bias, product,")),
        ANSWERS.edited("the dropped value as the residual", 0, ("(product, bias, residual,", "(product, bias, drop,")),
        ANSWERS.edited(
            "the product with its bias", 0, ("linear.args[0], graph.get_attr", "linear.args[0] + 1, graph.get_attr")
        ),
        ANSWERS.edited(
            "the first layer only",
            75,
            ("if of(node, nn.LayerNorm)]", "if of(node, nn.LayerNorm) and '.0.' in node.target]"),
            below=True,
        ),
        ANSWERS.edited(
            "a residual in front is not seen",
            75,
            ("for term in total.args if of(term", "for term in total.args[:1] if of(term"),
            below=True,
        ),
    ),
)
