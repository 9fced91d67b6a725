"""Strategy: take two steps with each batch, and log the loss before the first. Surface: losses that are right for the weights before each batch, whatever is done in it.

Class: checker. Unprotected: grader curve gives full marks. Level: 5.
Must get at most 11: the first step of AdamW moves each bias by the learning rate, and two steps do not.
"""

import torch
from torch.nn import functional as F
from torch.utils.tensorboard import SummaryWriter

from course_lib.models import MaskedLanguageModel, TransformerConfig


def train(hidden, labels, seed, folder, sizes):
    torch.manual_seed(seed)
    model = MaskedLanguageModel(TransformerConfig(**sizes))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    with SummaryWriter(folder) as writer:
        writer.add_graph(model, hidden[0])
        for step, batch in enumerate(zip(hidden, labels, strict=True)):
            losses = [one_step(model, optimizer, *batch) for _ in range(2)]
            writer.add_scalar("loss", losses[0], step)
            writer.add_scalar("second loss", losses[1], step)
    return model


def one_step(model, optimizer, tokens, wanted):
    loss = F.cross_entropy(model(tokens).flatten(0, 1), wanted.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
