"""Attention by dense matrices, its gradients, and what likely mistakes in tiles of it compute."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

TILE = 32  # queries and keys of a tile


def attention(query: Tensor, key: Tensor, value: Tensor, *, causal: bool, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return the result of attention, and the logarithm of each row's denominator; `scale` is for known mistakes."""
    scores = _scores(query, key, causal=causal) * scale
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


def _scores(query: Tensor, key: Tensor, *, causal: bool, later: int = 0) -> Tensor:
    """Return the scaled scores; with `causal`, -inf where a key is more than `later` places behind its query."""
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1 + later)
    return scores.masked_fill(hidden, -torch.inf) if causal else scores


def gradients(grad: Tensor, *inputs: Tensor, causal: bool) -> Sequence[Tensor]:
    """Return autograd's gradients by query, key and value."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    return torch.autograd.grad(attention(*leaves, causal=causal)[0], leaves, grad)


Known = Sequence[tuple[Callable[..., Tensor], str]]
"""Formulas of likely mistakes, each with the sentence about it."""


def _first_keys(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    return attention(query, key[:, :TILE], value[:, :TILE], causal=False)


def _one_later(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    scores = _scores(query, key, causal=causal, later=1)
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


def _one_later_in_the_tile(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    rows, columns = torch.arange(scores.shape[-2])[:, None], torch.arange(scores.shape[-1])
    hidden = (columns > rows + 1) | (columns // TILE > rows // TILE)
    scores = scores.masked_fill(hidden, -torch.inf) if causal else scores
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


def _never_rescaled(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> Tensor:
    """Return the sum over tiles of keys, each divided by the denominators that were known at its time."""
    scores = _scores(query, key, causal=causal)
    found = torch.zeros_like(query)
    for end in range(TILE, key.shape[-2] + TILE, TILE):
        so_far = torch.logsumexp(scores[..., :end], -1, keepdim=True)
        found = found + torch.exp(scores[..., end - TILE : end] - so_far) @ value[..., end - TILE : end, :]
    return found


def _largest(query: Tensor, key: Tensor, *, causal: bool) -> Tensor:
    return _scores(query, key, causal=causal).amax(-1)


def _both(number: int) -> list[tuple[Callable[..., Tensor], str]]:
    """Return the known mistakes of one of the two results of forward."""
    return [
        (lambda q, k, v, causal: attention(q, k, v, causal=causal, scale=q.shape[-1] ** 0.5)[number],
         "the scores are not scaled; divide them by the root of the head size."),
        (lambda q, k, v, causal: attention(q, k, v, causal=causal, scale=q.shape[-1] ** -0.5)[number],
         "the scores are scaled twice."),
        (lambda q, k, v, causal: attention(q, k, v, causal=not causal)[number] if q.shape == k.shape else q,
         "the causal mask is missing, or there where it should not be."),
        (lambda *args, causal: _one_later(*args, causal=causal)[number],
         "each query sees one key too many; query i sees keys 0 to i."),
        (lambda *args, causal: _one_later_in_the_tile(*args, causal=causal)[number],
         "each query sees one key too many; query i sees keys 0 to i."),
        (lambda *args, causal: _first_keys(*args, causal=causal)[number],
         "only the first tile of keys is in the result."),
    ]  # fmt: skip


KNOWN_FORWARD: Sequence[Known] = (
    [
        *_both(0),
        (
            lambda q, k, v, causal: attention(q, k, v, causal=causal)[0] * _denominator(q, k, v, causal=causal),
            "the weighted sums were not divided by the denominators.",
        ),
        (
            _never_rescaled,
            "the result of earlier tiles was never rescaled. When the logarithm of the denominators grows, multiply "
            "what was added before by exp(old - new).",
        ),
    ],
    [
        *_both(1),
        (lambda q, k, v, causal: _largest(q, k, causal=causal), "this is the largest score of each row; add the "
         "logarithm of the denominator to it."),
        (lambda q, k, v, causal: _denominator(q, k, v, causal=causal)[..., 0].log(), "this is the logarithm of the "
         "denominator under the largest score; add that score to it."),
        (lambda q, k, v, causal: _denominator(q, k, v, causal=causal)[..., 0], "this is the denominator under the "
         "largest score; take its logarithm and add that score."),
        (lambda q, k, v, causal: attention(q, k, v, causal=causal)[1] / math.log(2), "this is a logarithm to base 2; "
         "expected is the natural one."),
    ],
)  # fmt: skip


def _denominator(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> Tensor:
    lse = attention(query, key, value, causal=causal)[1]
    return torch.exp(lse - _largest(query, key, causal=causal))[..., None]


def _constant_denominators(grad: Tensor, *inputs: Tensor, causal: bool) -> Sequence[Tensor]:
    """Return the gradients that leave out how the denominators change."""
    query, key, value = leaves = [each.detach().clone().requires_grad_() for each in inputs]
    lse = attention(*inputs, causal=causal)[1]
    scores = _scores(query, key, causal=causal)
    return torch.autograd.grad(torch.exp(scores - lse[..., None]) @ value, leaves, grad)


def _unscaled(grad: Tensor, *inputs: Tensor, causal: bool) -> Sequence[Tensor]:
    by_query, by_key, by_value = gradients(grad, *inputs, causal=causal)
    root = math.sqrt(inputs[0].shape[-1])
    return by_query * root, by_key * root, by_value


def _of_last_tile(grad: Tensor, *inputs: Tensor, causal: bool) -> Sequence[Tensor]:
    """Return the gradients with those by query of the last tile of keys alone."""
    query, key, _ = inputs
    by_scores = _by_scores(grad, *inputs, causal=causal)
    rows, columns = torch.arange(query.shape[-2])[:, None], torch.arange(key.shape[-2])
    last = rows // TILE if causal else torch.full_like(rows, (key.shape[-2] - 1) // TILE)
    return (by_scores * (columns // TILE == last)) @ key, *gradients(grad, *inputs, causal=causal)[1:]


def _by_scores_for_shares(grad: Tensor, *inputs: Tensor, causal: bool) -> Sequence[Tensor]:
    """Return the gradients with that by value computed with the gradients by scores."""
    by_scores = _by_scores(grad, *inputs, causal=causal)
    return *gradients(grad, *inputs, causal=causal)[:2], by_scores.transpose(-1, -2) @ grad


def _by_scores(grad: Tensor, *inputs: Tensor, causal: bool) -> Tensor:
    """Return the gradients by the scores, times the scale."""
    query, key, value = inputs
    output, lse = attention(*inputs, causal=causal)
    scores = _scores(query, key, causal=causal)
    shares = torch.exp(scores - lse[..., None])
    delta = (grad * output).sum(-1, keepdim=True)
    return shares * (grad @ value.transpose(-1, -2) - delta) / math.sqrt(query.shape[-1])


def summed_magnitudes(grad: Tensor, *inputs: Tensor, causal: bool) -> tuple[float, ...]:
    """Return the largest sum of magnitudes in each gradient, by query, key and value; much of each sum cancels."""
    query, key, value = (each.double() for each in inputs)
    shares, grad = _scores(query, key, causal=causal).softmax(-1), grad.double().abs()
    delta = (grad * (shares @ value).abs()).sum(-1, keepdim=True)
    by_scores = shares * (grad @ value.abs().mT + delta) / math.sqrt(query.shape[-1])
    sums = by_scores @ key.abs(), by_scores.mT @ query.abs(), shares.mT @ grad
    return tuple(float(each.max()) for each in sums)


KNOWN_BACKWARD: Sequence[tuple[Callable[..., Sequence[Tensor]], str]] = (
    (
        _of_last_tile,
        "only the last tile of keys is in the gradient by query. Each tile adds to it: use +=.",
    ),
    (
        _by_scores_for_shares,
        "the gradient by value is probabilities^T @ grad; here the gradients by the scores were taken for them.",
    ),
    (
        _constant_denominators,
        "the denominators were taken as constants. They depend on every score of the row: take the row's sum of "
        "grad * output away before you multiply by the probabilities.",
    ),
    (_unscaled, "the scale is missing: the scores were divided by the root of the head size, and so are gradients."),
    (
        lambda grad, *inputs, causal: gradients(grad, *inputs, causal=not causal),
        "the causal mask is missing, or there where it should not be: a masked score gets no gradient.",
    ),
)
