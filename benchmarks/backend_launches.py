"""Count the launches and bytes that a backend for the toy machine saves, and the cost of few registers.

    python -m benchmarks.backend_launches [--quick]

Counts are the same on every machine. The last column, the time of lowering, is CPU time of this machine.
"""

import argparse
import time
import warnings
from collections.abc import Sequence

import torch

from course_lib.backends import Backend, Lowered, lower
from course_lib.backends.toy import ToyTarget
from course_lib.capture import capture
from course_lib.machine import Machine
from course_lib.models import workload

MODELS = ("feed_forward", "bert_layer", "encoder", "masked_language_model", "residual_network", "rnn", "lstm")
TRAINED = ("bert_layer", "residual_network")
REGISTERS = (4, 8, 12, 16, 20)
HEAD = f"{'':30}{'launches':>14}{'kB moved':>22}{'ratio':>8}{'parts':>8}{'CPU, s':>8}"


def print_inference(names: Sequence[str]) -> None:
    """Print a line for each model, lowered for inference."""
    print(f"inference{HEAD[9:]}")
    for name in names:
        model, inputs = workload(name).build()
        graph_module = torch.export.export(model, inputs).module()
        start = time.process_time()
        lowered = lower(graph_module, inputs, ToyTarget())
        print_line(name, lowered, time.process_time() - start)


def print_training(names: Sequence[str]) -> None:
    """Print a line for the forward and the backward graph of models in training."""
    print(f"\ntraining{HEAD[8:]}")
    for name in names:
        torch._dynamo.reset()
        model, inputs = workload(name).build()
        backend = Backend(ToyTarget())
        torch.compile(model.train(), backend=backend)(*inputs).sum().backward()
        for direction, lowered in zip(backend.names, backend.graphs, strict=True):
            print_line(f"{name}, {direction}", lowered)


def print_line(name: str, lowered: Lowered, took_s: float | None = None) -> None:
    """Print the cost of one graph before and after."""
    before, after = lowered.before, lowered.after
    assert before is not None, "sizes are known"
    assert after is not None, "sizes are known"
    launches = f"{before.launches} → {after.launches}"
    moved = f"{before.bytes_moved / 1e3:,.0f} → {after.bytes_moved / 1e3:,.0f}"
    parts = f"{sum(part.kept for part in lowered.parts)}/{len(lowered.parts)}"
    took = "" if took_s is None else f"{took_s:.2f}"
    print(f"{name:30}{launches:>14}{moved:>22}{before.bytes_moved / after.bytes_moved:>8.2f}{parts:>8}{took:>8}")


def print_registers(numbers: Sequence[int]) -> None:
    """Print spills and reloads of a sum that keeps sixteen values alive, on machines with few registers."""
    print(f"\n{'registers':>10}{'used':>8}{'spills':>8}{'reloads':>9}")
    inputs = tuple(torch.randn(64, 64) for _ in range(16))

    def there_and_back(*given: torch.Tensor) -> torch.Tensor:
        total = given[0]
        for value in (*given[1:], *reversed(given)):
            total = total * value + 1
        return total

    traced = capture(there_and_back, inputs, mode="make_fx").graph_module
    for registers in numbers:
        machine = Machine(registers)
        lower(traced, inputs, ToyTarget(machine))(*inputs)
        counts = machine.counts
        print(f"{registers:>10}{counts.registers:>8}{counts.spills:>8}{counts.reloads:>9}")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the first model, or number of registers, of each table")
    most = 1 if parser.parse_args().quick else None
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print_inference(MODELS[:most])
    print_training(TRAINED[:most])
    print_registers(REGISTERS[:most])


if __name__ == "__main__":
    main()
