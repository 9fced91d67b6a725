"""The graders that everybody writes first: they run the answer in their own process and believe what they see there.

Each function is one of them; it returns a score. They exist so that every hostile answer can prove that it fools
someone, and nothing outside the tests uses them. `serve` is a server, in a process of its own, which forks for each
request, a line `GRADER EXERCISE FILE FORGED SECONDS`, so that a proof takes milliseconds. The reply is what happened:
full marks, no marks, hangs, breaks.
"""

import asyncio
import atexit
import contextlib
import faulthandler
import gc
import importlib
import inspect
import json
import linecache
import math
import mmap
import operator
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import torch
import torch._dynamo  # here, so that not every child imports it at its first call of an operator
from torch import fx, nn
from torch.nn import functional as F

from tests.autograder.host.hostile import naive_channel
from tests.autograder.host.hostile.catalogue import text_of

MODULES = [
    importlib.import_module(f"{__package__}.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("naive_*.py"))
    if path.stem != Path(__file__).stem
]
NAMESPACE = {"math": math, "operator": operator, "torch": torch, "fx": fx, "nn": nn, "F": F, "__name__": "answer"}
for module in MODULES:
    NAMESPACE |= getattr(module, "NAMESPACE", {})
# by the folder's name
ENTRY = {
    **{folder: name for module in MODULES for folder, name in getattr(module, "ENTRY", {}).items()},
    "01_mlm_batches": "mask_tokens",
    "01_train": "train",
    "01": "scaled_dot_product",
    "02": "measure",
    "03": "bias_gelu",
    "04": "read_graph",
    "05_common_subexpressions": "share_equal",
    "05_dead_code_and_constants": "clean_up",
    "05_fix_the_self_cycle": "insert_tanh",
    "05_scale_dropout_rms_norm_pass": "fuse_scale_dropout_rms_norm",
    "05": "fuse_bias_silu",
    "11_refuse_look_alikes": "fuse_bias_gelu",
    "11_replace_block_end": "fuse_block_ends",
    "07_break_dynamo": "broken",
    "07_capture_backend": "collect",
    "07_predict_graphs": "count_graphs",
    "09_blocker_hunt": "hunted",
    "no": "change",
}


def attention(query, key, value):
    probabilities = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), -1)
    return probabilities @ value, probabilities


def problem(seed=0, size=8):
    torch.manual_seed(seed)
    return torch.randn(3, 2, 3, 4, size).unbind(0)


def comparison(answer):
    """Holds the expected tensors in a variable and compares with torch.allclose, in the process of the answer."""
    inputs = problem()
    expected = attention(*inputs)
    found = answer(*inputs)
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, expected, strict=True))


def subtraction(answer):
    """Asks whether any difference is too large, which NaN never is."""
    inputs = problem()
    found = answer(*inputs)
    return not any(bool(((f - e).abs() > 1e-5).any()) for f, e in zip(found, attention(*inputs), strict=True))


def first_output(answer):
    """Compares only the first output."""
    inputs = problem()
    return torch.allclose(answer(*inputs)[0], attention(*inputs)[0], atol=1e-5)


def tolerance(answer):
    """Has a tolerance that fits half precision, and asks for no dtype."""
    inputs = problem()
    found = answer(*inputs)
    return all(torch.allclose(f.float(), e, atol=1e-2) for f, e in zip(found, attention(*inputs), strict=True))


def reference_after(answer):
    """Computes the reference after the call, on the very tensors that the answer was given."""
    inputs = problem()
    found = answer(*inputs)
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))


def environment(answer):
    """Keeps its secret seed in the environment."""
    os.environ["GRADER_SEED"] = str(torch.seed() % 2**31)
    inputs = problem(int(os.environ["GRADER_SEED"]))
    found = answer(*[torch.empty_like(i) for i in inputs])  # the answer is to guess them
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))


def patient(answer):
    """Takes the time of the call, and compares when it finds the time."""
    inputs = problem()
    started = time.perf_counter()
    found = answer(*inputs)
    took = time.perf_counter() - started
    time.sleep(0.5)
    return took < 0.2 and all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))


class _Counting(torch.utils._python_dispatch.TorchDispatchMode):
    operators = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operators += 1
        return function(*args, **(kwargs or {}))


def warm_up(answer):
    """Checks the first call; the second, on the same inputs, is the one whose work it counts."""
    inputs = problem()
    found = answer(*inputs)
    right = all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))
    with _Counting() as counting:
        answer(*inputs)
    return right and counting.operators == 0


def warm_up_with_seeds(answer):
    """As `warm_up`, with inputs that differ from call to call: one seed after the other."""
    results = []
    counted = 0
    problems = [problem(seed) for seed in range(3)]
    for inputs in problems:
        with _Counting() as counting:
            found = answer(*inputs)
        counted = counting.operators  # of the last call
        results += [torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True)]
    return all(results) and counted == 0


def stream(answer):
    """Draws all inputs from one generator, one after the other, with a seed that it takes for secret."""
    generator = torch.Generator().manual_seed(1000 + os.getpid() % 900)
    for _ in range(2):
        inputs = [torch.randn(2, 3, 4, 8, generator=generator, dtype=torch.float64).float() for _ in range(3)]
        asked = inputs if not _ else [torch.empty_like(i) for i in inputs]  # now the answer is to know them
        found = answer(*asked)
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))


def thread_of_messages(answer):
    """Takes whatever comes for the reply to its question, if it has a number."""
    frame = naive_channel.Frame()  # noqa: F841 - a hostile answer finds it
    return answer(*problem()) is not None


def results_file(answer):
    """Reads the verdict from a file that a worker is to write."""
    found = answer(*problem())
    Path("results.json").exists() or Path("results.json").write_text(json.dumps({"score": float(found is None)}))
    return json.loads(Path("results.json").read_text())["score"]


def source_text(answer):
    """Looks for forbidden words in the answer's text, and believes the answer otherwise."""
    return "bias_silu" in inspect.getsource(answer)


def shared(answer):
    """Gives inputs in shared memory, and reads them again after the call, to see whether they were written to."""
    inputs = problem()
    fd = os.memfd_create("inputs")
    os.write(fd, inputs[0].numpy().tobytes())
    memory = mmap.mmap(fd, inputs[0].nbytes)
    found = answer(*inputs)
    return bytes(memory) == inputs[0].numpy().tobytes() and found is not None


def awaiting(answer):
    """Awaits what has to be awaited, in its own process, before it compares."""
    inputs = problem()
    found = answer(*inputs)
    found = asyncio.run(found) if inspect.isawaitable(found) else found
    return all(torch.allclose(f, e, atol=1e-5) for f, e in zip(found, attention(*inputs), strict=True))


def limits():
    """Let no naive grader hurt the machine."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30),) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (8, 8))


def grader_named(name):
    """Return the naive grader of this name, which stands here or in one of `MODULES`."""
    return next(vars(module)[name] for module in (sys.modules[__name__], *MODULES) if name in vars(module))


def main(grader, exercise, path):
    source = text_of(Path(path))
    namespace = dict(NAMESPACE)
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)  # where Triton finds its lines
    exec(compile(source, path, "exec"), namespace)
    score = float(bool(grader_named(grader)(namespace[ENTRY.get(exercise, ENTRY.get(exercise[:2]))])))
    print(json.dumps({"score": score}), flush=True)


def outcome(output, status):
    if status is None:
        return "hangs"
    scores = re.findall(r'^\{"score".*\}$', output, re.MULTILINE)
    if not scores:
        return "breaks"
    return "full marks" if json.loads(scores[-1])["score"] == 1.0 else "no marks"


def serve(requests, replies):
    """Answer requests from one descriptor on another, in a fork of the tests' process that keeps nothing of theirs."""
    os.dup2(requests, 0)
    os.dup2(replies, 1)
    os.dup2(1, 2)
    faulthandler.disable()
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    os.environ.clear()
    os.environ["PATH"] = os.defpath
    atexit._clear()
    sys.modules["__main__"] = sys.modules[__name__]
    for name in [name for name in sys.modules if name.startswith("autograder")]:
        del sys.modules[name]  # no naive grader has ours, by which an answer would know it
    gc.freeze()  # the objects of the tests are none that an answer could have found
    for line in sys.stdin:
        grader, exercise, path, forged, seconds = line.split()
        folder = tempfile.mkdtemp()  # no TemporaryDirectory: its finaliser would run in the children, too
        print(json.dumps(graded(grader, exercise, path, forged, folder, float(seconds))), flush=True)
        shutil.rmtree(folder)


def graded(grader, exercise, path, forged, folder, patience_s):
    printed = Path(folder, "printed")
    child = os.fork()
    if child == 0:
        os.setsid()
        with printed.open("wb") as file, Path(os.devnull).open() as nothing:
            os.dup2(nothing.fileno(), 0), os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
        os.chdir(folder)
        os.environ["FORGED"] = forged
        limits()
        try:
            main(grader, exercise, path)
        except BaseException as error:
            print(f"{type(error).__name__}: {str(error)[:2000]!a}", flush=True)
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(0)
    status = wait(child, patience_s)
    time.sleep(0.3 if "fork" in path else 0.0)  # what forked may go on
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return {
        "outcome": outcome(printed.read_text(errors="replace"), status),
        "printed": printed.read_text(errors="replace")[-2000:],
    }


def wait(child, patience_s):
    """The child's status, None if it had to be killed."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
