"""Compare the capture modes on the gallery, on our models and on Hugging Face's BERT.

    python -m benchmarks.capture_comparison [--quick]

Nothing is timed. `--quick` tries three programs of the gallery and the smallest model. `benchmarks.record` saves
the output in benchmarks/results.
"""

import argparse
import platform
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from course_lib.capture.comparison import MARKS, Comparison, compare_modes
from course_lib.models import workload
from course_lib.models.gallery import GALLERY
from course_lib.show import Table

QUICK_PROGRAMS = 3
MODELS = ("perceptron", "bert_layer", "masked_language_model", "rnn", "lstm", "residual_network")


def gallery() -> Iterator[Comparison]:
    """Compare each program of the gallery."""
    for name, entry in GALLERY.items():
        compared = compare_modes(
            entry.build(), entry.example_inputs(), entry.probe_inputs(), switch_training=entry.switch_training
        )
        yield replace(compared, name=name)


def models(names: Sequence[str]) -> Iterator[Comparison]:
    """Compare our models in their tiny size, on a second batch of the same size."""
    for name in names:
        model, inputs = workload(name).build()
        _, probe = workload(name).build(seed=1)
        yield replace(compare_modes(model, inputs, [probe]), name=name)


def hugging_face() -> Iterator[Comparison]:
    """Compare Hugging Face's BERT with its default results and with tuples; the second probe is longer."""
    for return_dict in (True, False):
        tokens, same, longer = (torch.randint(50, (2, length)) for length in (7, 7, 9))
        shapes = {"input_ids": {0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO}}
        model = bert(return_dict=return_dict).eval()
        compared = compare_modes(model, (tokens,), [(same,), (longer,)], dynamic_shapes=shapes)
        yield replace(compared, name=f"BertLMHeadModel, return_dict={return_dict}")


def bert(*, return_dict: bool) -> torch.nn.Module:
    """Build a small BERT of Hugging Face's, without downloading anything."""
    from transformers import BertConfig
    from transformers.models.bert.modeling_bert import BertLMHeadModel

    sizes: dict[str, Any] = {
        "hidden_size": 24,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
    }
    config = BertConfig(vocab_size=50, is_decoder=True, use_cache=False, return_dict=return_dict, **sizes)
    model: torch.nn.Module = BertLMHeadModel(config)
    return model


def overview(comparisons: Sequence[Comparison]) -> str:
    """Return a table with a row for each program and a column for each mode, and a legend of the marks."""
    rows = ((each.name, *(MARKS[verdict] for verdict in each.verdicts.values())) for each in comparisons)
    legend = "  ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
    return f"{Table(('program', *comparisons[0].verdicts), tuple(rows))}\n\n{legend}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three programs and the smallest model")
    quick = parser.parse_args().quick
    torch.manual_seed(0)
    machine = f"torch {torch.__version__}, Python {platform.python_version()}"
    print(f"Capture modes compared ({machine})\n\nThe gallery\n")
    print(overview(list(islice(gallery(), QUICK_PROGRAMS if quick else None))))
    print(f"\nOur models\n\n{overview(list(models(MODELS[:1] if quick else MODELS)))}")
    if not quick:
        print("\n\n".join(["\nHugging Face", *map(str, hugging_face())]))


if __name__ == "__main__":
    main()
