"""What notebooks say of memory and of machines holds: each number behind a sentence is counted here again."""

import json
import re
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.export import Dim, export
from torch.nn import functional as F
from torch.utils.data import DataLoader

import course_lib.kernels  # noqa: F401  # registers the operators
from course_lib.graph import saved_for_backward

COURSE = Path(__file__).parents[2]
NOTEBOOKS = sorted((COURSE / "notebooks").glob("*/*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_says_that_something_has_not_been_run(path: Path) -> None:
    said = re.compile(r"not\s+(yet\s+)?(been\s+)?run\s+on|not\s+yet\s+run", re.IGNORECASE)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert [cell["id"] for cell in cells if said.search("".join(cell["source"]))] == []


def test_the_end_of_a_block_keeps_both_operands_and_a_seed_where_a_product_computed_them() -> None:
    fused = torch.ops.course_lib.bias_dropout_residual_layer_norm

    def eager(x, bias, residual, *norm):
        return F.layer_norm(F.dropout(x + bias, 0.1) + residual, (128,), *norm)

    def saved(way, factor):
        given = [torch.randn(size, requires_grad=True) for size in ((64, 128), (128,), (64, 128), (128,), (128,))]
        behind = saved_for_backward(lambda x, b, r, *norm: way(factor(x), b, factor(r), *norm), given)
        return behind.total_bytes

    operand = 64 * 128 * 4
    assert saved(fused, lambda x: x) == 8  # a program's own inputs are left out
    assert saved(fused, lambda x: 2 * x) == 2 * operand + 8
    assert saved(eager, lambda x: 2 * x) == 2 * operand + 64 * 2 * 4  # factors of dropout, the sum, two numbers a row


@pytest.mark.parametrize(("least", "size", "raises"), [(2, 1, False), (2, 129, True), (4, 3, True), (3, 2, True)])
def test_a_module_of_an_export_checks_greatest_sizes_and_least_sizes_above_two(least, size, raises) -> None:
    sizes = ({1: Dim("length", min=least, max=128)},)
    program = export(torch.nn.Linear(8, 8), (torch.randn(2, 6, 8),), dynamic_shapes=sizes).module()
    with pytest.raises(AssertionError, match="Guard failed") if raises else nullcontext():
        program(torch.randn(2, size, 8))


def test_a_trainer_compiles_the_step_of_a_compiled_task_and_nothing_of_one_compiled_in_place() -> None:
    import lightning  # here, since every process of a run collects all tests, and this takes seconds

    class Task(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.part = torch.nn.Linear(4, 4)

        def training_step(self, batch, batch_idx):
            return self.part(batch).square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def graphs(compiled):
        torch._dynamo.reset()
        counter, quiet = CompileCounter(), ("logger", "enable_checkpointing", "enable_progress_bar")
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=1, **dict.fromkeys(quiet, False))
        trainer.fit(compiled(Task(), counter), DataLoader([torch.ones(2, 4)] * 2, batch_size=None))
        return counter.frame_count

    assert graphs(lambda task, counter: torch.compile(task, backend=counter)) == 1
    assert graphs(lambda task, counter: task.compile(backend=counter) or task) == 0
