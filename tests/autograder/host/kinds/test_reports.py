"""What a worker reports is read by its form; anything else makes the answer malformed, and never the grader fail."""

import pytest

from autograder.host.channel import MalformedAnswerError
from autograder.host.kinds.reports import counts, entries, items, numbers

# reader, what is no report for it
REFUSED = [
    (entries, [1]),
    (numbers, {"0": 1.0}),
    (numbers, [1.0, "2"]),
    (numbers, [True]),
    (counts, [1.0]),
    (counts, [-1]),
    (counts, [10**5000]),
    (counts, None),
    (lambda found: items(found, (float,), 2), [1.0]),
]


@pytest.mark.parametrize(("reader", "found"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_anything_else_is_malformed(reader, found):
    with pytest.raises(MalformedAnswerError):
        reader(found)


def test_what_has_the_form_comes_back():
    assert entries({"a": 1}) == {"a": 1}
    assert numbers([1, 2.5], 2) == [1, 2.5]
    assert counts([0, 7]) == [0, 7]
