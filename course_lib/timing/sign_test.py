"""Test the median of ratios by a sequential sign test, which may be evaluated after every pair.

**The question.** Is the median of a stream of ratios above a cut, or below it? Each ratio gives a sign: above or not.
If the median is at the cut or below it, a sign is positive with probability p ≤ ½, whatever the distribution of the
noise, its tails included.

**The problem.** An ordinary test is valid once, for a number of pairs fixed beforehand. Evaluating it after each pair
and stopping at a significant result gives many chances to be wrong: at a nominal 1 % it is wrong far more often.

**The rule.** Bet against p ≤ ½. A player starts with 1, and before each sign bets on "above" at the odds of a fair
coin. If p ≤ ½ the player cannot expect to win, so the capital E never grows on average (it is a supermartingale), and

    P(E ever reaches 1 / alpha) ≤ alpha        (Ville, Étude critique de la notion de collectif, 1939)

after any number of evaluations, however large. So stop when E ≥ 1 / alpha. Such an E is called an e-value.
Here the player spreads the capital evenly over all p between ½ and 1; after k positive signs of n the capital is

    E = ∫ over p from ½ to 1 of  2 · p^k (1 − p)^(n − k) · 2^n dp
      = 2^(n + 1) · B(k + 1, n − k + 1) · P(Binomial(n + 1, ½) ≤ k)

(a mixture in the manner of Robbins, Annals of Mathematical Statistics 41, 1970; its use for repeated evaluation is
surveyed by Ramdas, Grünwald, Vovk and Shafer, arXiv:2210.01948, and by Johari, Pekelis and Walsh, arXiv:1512.04922).
Nine positive signs in a row give E = 102, the first value above 1 / 0.01.

**The assumption.** Given everything before it, the next sign is positive with probability at most ½. Dependent
pairs violate this, so the decision also checks the correlation of neighbours.
"""

import math
from functools import lru_cache


@lru_cache(maxsize=1 << 16)
def log_e_value(positive: int, count: int) -> float:
    """Return the logarithm of the e-value against "a sign is positive with probability at most one half".

    >>> round(math.exp(log_e_value(9, 9)), 1)
    102.3
    >>> round(math.exp(log_e_value(5, 10)), 2)
    0.37
    """
    tail = sum(math.comb(count + 1, below) for below in range(positive + 1))  # of 2 ** (count + 1)
    log_beta = math.lgamma(positive + 1) + math.lgamma(count - positive + 1) - math.lgamma(count + 2)
    return log_beta + math.log(tail)


def least_pairs(alpha: float) -> int:
    """Return the least number of pairs for a decision: this many equal signs reach 1 / alpha.

    >>> least_pairs(0.01)
    9
    """
    count = 1
    while log_e_value(count, count) < -math.log(alpha):
        count += 1
    return count


class SignTest:
    """Hold two bets on one stream of ratios: that its median is above the cut, and that it is below.

        >>> test = SignTest(cut=1.0, alpha=0.01)
        >>> for ratio in [1.2] * 20:
        ...     test.add(ratio)
        >>> test.side, test.count
        (1, 9)

    `side` is 0 until a bet reaches 1 / alpha, then it stays 1 (above) or −1 (below); later ratios are not
    counted. A ratio equal to the cut counts against both bets.
    """

    def __init__(self, *, cut: float, alpha: float) -> None:
        self.cut = cut
        self.side = 0
        self.count = 0
        self._above = 0
        self._below = 0
        self._enough = -math.log(alpha)

    def add(self, ratio: float) -> None:
        """Add the next ratio, unless the test is already decided."""
        if self.side:
            return
        self.count += 1
        self._above += ratio > self.cut
        self._below += ratio < self.cut
        if log_e_value(self._above, self.count) >= self._enough:
            self.side = 1
        elif log_e_value(self._below, self.count) >= self._enough:
            self.side = -1

    @property
    def e_above(self) -> float:
        """Return the capital of the player who bets that the median is above the cut."""
        return _exp(log_e_value(self._above, self.count))

    @property
    def e_below(self) -> float:
        """Return the capital of the player who bets that the median is below the cut."""
        return _exp(log_e_value(self._below, self.count))


def _exp(log: float) -> float:
    return math.exp(min(log, 700.0))  # beyond, a float overflows
