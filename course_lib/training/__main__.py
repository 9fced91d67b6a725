"""Train the tiny model and print how it does beside the unigram baseline: `python -m course_lib.training`."""

import argparse
import sys
from pathlib import Path

import torch

from course_lib.errors import CourseError
from course_lib.training.config import TrainingConfig
from course_lib.training.loop import train


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 if the model beats the baseline, 1 if it does not, 2 if it could not be trained."""
    defaults = TrainingConfig()
    parser = argparse.ArgumentParser(prog="python -m course_lib.training", description=__doc__)
    parser.add_argument("--steps", type=int, default=defaults.steps, help="how many batches (default %(default)s)")
    parser.add_argument("--seed", type=int, default=defaults.seed, help="decides everything drawn by chance")
    parser.add_argument("--folder", type=Path, help="where checkpoints and TensorBoard's files go; goes on from there")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default %(default)s)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(max(1, options.threads))
    try:
        warm_up_steps = min(defaults.warm_up_steps, options.steps - 1)
        run = train(
            TrainingConfig(steps=options.steps, warm_up_steps=warm_up_steps, seed=options.seed), folder=options.folder
        )
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    print(run)
    return 0 if run.evaluations[-1].beats_baseline else 1


if __name__ == "__main__":
    sys.exit(main())
