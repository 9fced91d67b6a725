"""Hidden checks and controls of exercises 17.2 to 17.4."""

from autograder.exercises.capstone.optimise_step import LAYER
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.training_step import Step, cheaper

ANSWERS = Answers(__name__)
RENAMED = {"dense": "fc", "attention": "mixer", "feed_forward": "mlp", "attention_norm": "ln"}
LONGER = Step(
    "of one layer with longer sequences",
    LAYER.arguments,
    {"kernels": 23, "launches": 58, "bytes_moved": 3_346_368, "saved_bytes": 356_368},
    sequence=48,
)
VARIANTS = (
    Step(
        "of two renamed layers",
        {**LAYER.arguments, "layers": 2, "names": RENAMED},
        {"kernels": 46, "launches": 115, "bytes_moved": 1_527_152, "saved_bytes": 143_392},
    ),
    Step(
        "with the residual first",
        {**LAYER.arguments, "residual_first": True, "dropout": 0.25},
        {"kernels": 23, "launches": 58, "bytes_moved": 325_816, "saved_bytes": 24_432},
        sequence=7,
    ),
    Step(
        "with ReLU",
        {**LAYER.arguments, "activation": "relu", "width": 16, "heads": 2, "eps": 1e-3},
        {"kernels": 23, "launches": 58, "bytes_moved": 518_144, "saved_bytes": 46_096},
        batch=3,
    ),
)
"""The counters of each are those of the three worked routes, which agree."""
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
        Control("unchanged", "def optimise(gm):\n    return gm\n", 0),
        Control("cheap and wrong", NOTHING_LEFT, 0),
        ANSWERS.edited("dropout is gone", 0, ("modules[drop.target].p,", "0.0,")),
        ANSWERS.edited("dropout is off", 0, ("modules[drop.target].training", "False")),
        ANSWERS.edited("no bias of the norm", 0, ("weight, shift, *rest", "weight, bias, *rest")),
        ANSWERS.edited("the eps of the first model", 45, ("modules[norm.target].eps)", "1e-5)")),
        ANSWERS.edited("the p of the first model", 45, ("modules[drop.target].p,", "0.1,")),
        ANSWERS.edited(
            "one end of each layer",
            75,
            ("or (not dropped)", "or not dropped or 'attention' in norm.target or norm.target.endswith('ln')"),
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
