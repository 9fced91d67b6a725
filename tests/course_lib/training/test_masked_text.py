"""80 of 100 selected bytes are masked, 10 replaced, 10 left; what is no byte is never touched."""

import math

import pytest
import torch

from course_lib.errors import TrainingError
from course_lib.training import decode, encode
from course_lib.training.corpus import END, MASK, PADDING, Document
from course_lib.training.masked_text import IGNORED, mask_tokens, masked_loss, unigram_log_probabilities, unigram_loss

BYTES = 200_000
LETTER = 97


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_three_shares_are_those_of_bert():
    batch = mask_tokens(torch.full((1, BYTES), LETTER), generator())
    selected = batch.labels != IGNORED
    seen = batch.tokens[selected]

    # five standard deviations of a share p among n
    for share, of, p in [
        (selected.sum(), BYTES, 0.15),
        ((seen == MASK).sum(), len(seen), 0.8),
        ((seen == LETTER).sum(), len(seen), 0.1 + 0.1 / 256),
    ]:
        assert abs(share.item() / of - p) < 5 * math.sqrt(p * (1 - p) / of)
    assert batch.labels[selected].unique().tolist() == [LETTER]
    assert len(seen[seen != MASK].unique()) == 256  # a replaced byte can become any


def test_what_was_not_selected_stays_and_asks_nothing():
    tokens = torch.randint(256, (8, 64), generator=generator(1))
    batch = mask_tokens(tokens, generator())
    selected = batch.labels != IGNORED

    assert torch.equal(batch.tokens[~selected], tokens[~selected])
    assert torch.equal(batch.labels[selected], tokens[selected])


def test_padding_and_other_special_numbers_are_never_selected_nor_put_in():
    tokens = torch.tensor([LETTER, END, PADDING, MASK]).repeat(1000, 1)
    batch = mask_tokens(tokens, generator(), selected_share=1.0)

    assert (batch.labels[:, 0] == LETTER).all()
    assert (batch.labels[:, 1:] == IGNORED).all()
    assert torch.equal(batch.tokens[:, 1:], tokens[:, 1:])
    assert not torch.isin(batch.tokens[:, 0], torch.tensor([PADDING, END])).any()
    assert torch.equal(batch.kept, tokens != PADDING)


def test_equal_generators_hide_equal_bytes_and_others_others():
    tokens = torch.randint(256, (8, 64), generator=generator(1))
    first, second, other = (mask_tokens(tokens, generator(seed)) for seed in (0, 0, 1))

    assert torch.equal(first.tokens, second.tokens)
    assert not torch.equal(first.labels, other.labels)


def test_hiding_leaves_the_given_tokens_and_the_global_generator_alone():
    tokens = torch.randint(256, (8, 64), generator=generator(1))
    copy, state = tokens.clone(), torch.get_rng_state()
    mask_tokens(tokens, generator(), selected_share=1.0)

    assert torch.equal(tokens, copy)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("share", [0, -0.1, 1.1, math.nan])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(TrainingError, match="it expects a share above 0, at most 1"):
        mask_tokens(torch.zeros(1, 1, dtype=torch.int64), generator(), selected_share=share)


def test_tokens_of_another_type_are_refused():
    with pytest.raises(TrainingError, match=r"tokens of torch\.uint8; it expects torch\.int64"):
        mask_tokens(torch.zeros(1, 1, dtype=torch.uint8), generator())


def test_the_loss_of_a_fair_guess_is_the_logarithm_of_the_vocabulary():
    labels = torch.tensor([[5, IGNORED, 7]])

    assert masked_loss(torch.zeros(1, 3, 259), labels).item() == pytest.approx(math.log(259))
    assert masked_loss(torch.zeros(1, 3, 259), torch.full((1, 3), IGNORED)).item() == 0


def test_rows_hold_each_byte_once_and_never_two_modules():
    documents = [Document("m", ("Grüße", "x" * 20)), Document("n", ("y",))]
    rows = encode(documents, sequence_length=8)

    assert rows.shape == (5, 8)
    assert "".join(decode(row) for row in rows[:4]).replace("\ufffd", "?").count("x") == 20
    assert decode(rows.flatten()) == "Grüße¶" + "x" * 20 + "¶y¶"
    assert rows[4].tolist() == [ord("y"), END] + [PADDING] * 6


def test_rows_of_no_length_and_of_no_text_are_refused():
    with pytest.raises(TrainingError, match="sequence_length=0; it expects 1 or more"):
        encode([Document("m", ("a",))], sequence_length=0)
    with pytest.raises(TrainingError, match="got no documents"):
        encode([], sequence_length=8)


def test_the_unigram_baseline_is_the_hand_computed_one():
    log_probabilities = unigram_log_probabilities(torch.tensor([[97, 97, 98, END, PADDING]]))

    assert log_probabilities.exp().sum().item() == pytest.approx(1)
    assert unigram_loss(log_probabilities, torch.tensor([97, IGNORED, 99])) == pytest.approx(
        -(math.log(3 / 259) + math.log(1 / 259)) / 2
    )
