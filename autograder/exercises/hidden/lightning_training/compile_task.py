"""Hidden checks and controls of exercise 16.2."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.lightning_training.compile_task import TORCH_PARTS, captures
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)
START = "def compile_task(task, backend):\n    "
EACH = f"{START}for name, part in list(task.named_children()):\n        "
OPTIONS = "backend=backend, dynamic=True"
PARTS_OF_TORCH = "A part can be a class with a forward of its own, or one of `torch.nn`."
EACH_PART = "Each part is captured"
MENDED = """\
names = [name for name, _ in task.named_children()]

    def renamed(module, state, *_):
        for key in list(state):
            part, _, rest = key.partition(".")
            if part in names and not rest.startswith("_orig_mod."):
                state[f"{part}._orig_mod.{rest}"] = state.pop(key)

    task.register_load_state_dict_pre_hook(renamed)"""


def _style(name: str, text: str, marks: float, trap: str = "") -> Control:
    return Control(name, f"{text}\n    return task\n", marks, trap=trap)


HIDDEN = HiddenPart(
    checks=(Check("parts that are classes of torch.nn", "captures", 3, captures(*TORCH_PARTS)),),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.file("a function around each part", 10),
        ANSWERS.file("names mended by hooks", 10),
        _style("by name", f"{EACH}getattr(task, name).forward = torch.compile({OPTIONS})(part.forward)", 10),
        _style("an optimisation context", f"{EACH}part.forward = torch._dynamo.optimize({OPTIONS})(part.forward)", 10),
        _style(
            "modules that are parts",
            f"{START}for part in task.children():\n        "
            f"setattr(part, 'forward', torch.compile(part.forward, {OPTIONS}, fullgraph=True))",
            10,
        ),
        _style(
            "sizes marked",
            f"{EACH}compiled = torch.compile(part.forward, backend=backend)\n        "
            "part.forward = lambda x, compiled=compiled: (torch._dynamo.mark_dynamic(x, 0), compiled(x))[1]",
            10,
        ),
        _style(
            "a function for one part",
            f"def compile_part(part, backend):\n    part.forward = torch.compile(part.forward, {OPTIONS})\n\n\n"
            f"{START}for part in task.children():\n        compile_part(part, backend)",
            10,
        ),
        _style(
            "names of builtins, an import and no mode",
            f"import torch\n\n\n{START}torch._dynamo.reset()\n    parts, id = list(task.children()), 0\n    "
            "while id < len(parts):\n        assert isinstance(parts[id], nn.Module)\n        "
            f"compiled = torch.compile(parts[id].forward, {OPTIONS}, mode=None, options=None)\n        "
            "parts[id].forward = lambda input, compiled=compiled: compiled(input)\n        id += 1",
            10,
        ),
        _style(
            "in place where it captures",
            f"{EACH}if type(part).__module__.startswith('torch.nn'):\n            "
            f"part.forward = torch.compile({OPTIONS})(part.forward)\n        else:\n            "
            f"part.compile({OPTIONS})",
            10,
        ),
        _style(
            "compile in place",
            f"{START}for part in task.children():\n        part.compile({OPTIONS})",
            7,
            trap=PARTS_OF_TORCH,
        ),
        _style(
            "every module in place",
            f"{START}for part in task.modules():\n        part.compile({OPTIONS})",
            7,
            trap=PARTS_OF_TORCH,
        ),
        _style("the task in place", f"{START}task.compile({OPTIONS})", 0),
        _style("nothing", f"{START}pass", 0),
        _style("the task's forward", f"{START}task.forward = torch.compile(task.forward, {OPTIONS})", 0),
        Control("the task wrapped", f"{START}return torch.compile(task, {OPTIONS})\n", 0),
        _style("parts replaced", f"{EACH}setattr(task, name, torch.compile(part, {OPTIONS}))", 7),
        _style(
            "parts replaced, names mended for loading",
            f"{EACH}setattr(task, name, torch.compile(part, {OPTIONS}))\n    {MENDED}",
            7,
        ),
        _style("sizes fixed", f"{EACH}part.forward = torch.compile(part.forward, backend=backend, dynamic=False)", 7),
        _style("sizes guessed", f"{EACH}part.forward = torch.compile(part.forward, backend=backend)", 7),
        _style(
            "the first part only",
            f"{START}part = next(task.children())\n    part.forward = torch.compile(part.forward, {OPTIONS})",
            7,
            trap=EACH_PART,
        ),
        _style(
            "by an attribute's name",
            f"{START}task.model.forward = torch.compile(task.model.forward, {OPTIONS})",
            7,
            trap=EACH_PART,
        ),
        _style(
            "without the backend", f"{EACH}part.forward = torch.compile(part.forward, backend='eager', dynamic=True)", 0
        ),
        _style(
            "a copy is compiled",
            f"{EACH}import copy\n        part.forward = torch.compile(copy.deepcopy(part).forward, {OPTIONS})",
            0,
        ),
        Control("returns nothing", f"{EACH}part.forward = torch.compile(part.forward, {OPTIONS})\n", 0),
    ),
)
