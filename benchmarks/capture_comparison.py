"""Which capture mode takes which program: the gallery, our models and Hugging Face's BERT, tried live.

    python benchmarks/capture_comparison.py

Nothing is timed. The tables are printed, and written to benchmarks/results/capture_comparison.md.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a machine without the package installed runs this too

from course_lib.capture import Comparison, compare_modes, overview  # noqa: E402  # found by the line above
from course_lib.models import workload  # noqa: E402
from course_lib.models.gallery import GALLERY  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "capture_comparison.md"
# name -> arguments that torch.fx has to be told, since it cannot see that they are missing
MODELS: dict[str, dict[str, object]] = {
    "perceptron": {},
    "bert_layer": {"mask": None},
    "masked_language_model": {"mask": None, "segments": None},
    "rnn": {"hidden": None},
    "lstm": {},
    "residual_network": {},
}


def gallery() -> Iterator[Comparison]:
    """Compare each program of the gallery."""
    for name, entry in GALLERY.items():
        compared = compare_modes(
            entry.build(), entry.example_inputs(), entry.probe_inputs(), switch_training=entry.switch_training
        )
        yield replace(compared, name=name)


def models() -> Iterator[Comparison]:
    """Compare our models in their tiny size, on a second batch of the same size."""
    for name, fixed in MODELS.items():
        model, inputs = workload(name).build()
        _, probe = workload(name).build(seed=1)
        yield replace(compare_modes(model, inputs, [probe], concrete_args=fixed), name=name)


def hugging_face() -> Iterator[Comparison]:
    """Compare Hugging Face's BERT as it comes, and returning tuples; the second probe is longer."""
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


def main() -> None:
    """Print the tables and write them down."""
    torch.manual_seed(0)
    machine = f"torch {torch.__version__}, Python {platform.python_version()}"
    bert = list(hugging_face())
    parts = ["The gallery", str(overview(list(gallery()))), "Our models", str(overview(list(models())))]
    parts += ["Hugging Face", *map(str, bert)]
    text = "\n\n".join([f"Capture modes compared ({machine})", *parts])
    print(text)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(f"```\n{text}\n```\n", encoding="utf-8")


if __name__ == "__main__":
    main()
