"""How results are graded where they are believed.

Archives of TorchScript are taken for data: unpickled, loaded, or read by two readers. And nobody asks what else a
number may be: not one, or larger than all memory.
"""

import io
import pickle
import zipfile

import torch
from torch.nn import functional as F


def _archive(answer):
    buffer = io.BytesIO()
    torch.jit.save(answer if isinstance(answer, torch.jit.ScriptFunction) else torch.jit.script(answer), buffer)
    return buffer.getvalue()


def _right(program):
    x, bias = torch.randn(4, 8), torch.randn(8)
    return torch.allclose(program(x, bias), F.gelu(x + bias, approximate="tanh"), atol=1e-5)


def unpickled(answer):
    """Unpickles the constants of an archive, to see whether results are among them."""
    with zipfile.ZipFile(io.BytesIO(_archive(answer))) as archive:
        constants = next(name for name in archive.namelist() if name.endswith("/constants.pkl"))
        return not pickle.loads(archive.read(constants))


def loaded(answer):
    """Loads an archive in its own process, and compares what the program there gives."""
    return _right(torch.jit.load(io.BytesIO(_archive(answer))))


def inspected(answer):
    """Looks for forbidden calls in the code that Python's zipfile finds, and then has torch load the archive."""
    data = _archive(answer)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        code = b"".join(archive.read(name) for name in set(archive.namelist()) if name.endswith(".py"))
    return b"from_file" not in code and _right(torch.jit.load(io.BytesIO(data)))


def asked_again(answer):
    """Takes one archive to run it, the next to see what is fused in it, and a third to run what was described."""
    values, described, again = (torch.jit.load(io.BytesIO(_archive(answer))) for _ in range(3))
    kinds = [node.kind() for node in described.graph.nodes()]
    return _right(values) and _right(again) and "aten::tanh" in kinds and "aten::stack" not in kinds


def sloped(answer):
    """Compares the backward that stands beside an answer with autograd, and never asks how it got its numbers."""
    x, bias, grad = (torch.randn(*shape, requires_grad=True) for shape in ((4, 8), (8,), (4, 8)))
    found = answer.__globals__["bias_gelu_backward"](grad, x, bias)
    expected = torch.autograd.grad(F.gelu(x + bias, approximate="tanh"), (x, bias), grad)
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, expected, strict=True))


def curve(answer):
    """Takes for a loss what begins as that of an even guess and ends lower, in the event files that an answer wrote."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    sizes = {"hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "num_layers": 1, "vocab_size": 25}
    tokens = torch.arange(64 * 4 * 8).view(64, 4, 8) % 3
    answer(tokens, tokens, 0, "events", sizes | {"max_positions": 8, "dropout": 0.0})
    events = EventAccumulator("events").Reload()
    values = [event.value for event in events.Scalars("loss")]
    return len(values) >= 50 and values[0] > 2.4 and values[-1] < 2.0


def pickled(answer):
    """Has the answer in a worker, whose results it unpickles."""
    return bool(pickle.loads(pickle.dumps(answer([]))))


def tallied(answer):
    """Counts how often each token occurs among those that were hidden."""
    tokens = torch.randint(0, 24, (16, 40))
    hidden, _ = answer(tokens, 7, letters=24, mask=25, padding=24)
    return len(torch.bincount(hidden.flatten())) < 30


def tolerant(answer):
    """Asks whether a number is too far from the right one, which NaN never is."""
    programs = ["eager", "fused"]
    report = answer({"programs": programs, "times": [["eager", 3.0], ["fused", 2.0]]})
    return not abs(report["ratio"] - 1.5) > 0.01
