"""Sums of products of values, whatever order the program writes them in.

`0.5 * x * (1 + e)`, `x * (0.5 + e / 2)` and `(x + x * e) * 0.5` are one polynomial: 0.5 · x + 0.5 · x · e. So a formula
need not be listed in each of its algebraic orders: it is written once, as a polynomial, and compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import fx

MAX_TERMS = 12  # the longest formula that we look for has four; what grows beyond this is none of ours
MAX_POWER = 4

Monomial = frozenset[tuple[fx.Node, int]]  # values with their exponents; the empty one is the number 1
ONE: Monomial = frozenset()


class TooLargeError(Exception):
    """What was computed is no polynomial that we could recognise."""


@dataclass(frozen=True)
class Polynomial:
    """A sum of coefficient · monomial; exponents may be negative.

    >>> x = list(fx.symbolic_trace(lambda x: x).graph.nodes)[0]
    >>> (Polynomial.of(x) + Polynomial.number(2.0)).power(2)
    1·x^2 + 4·x + 4
    """

    terms: Mapping[Monomial, float]

    @staticmethod
    def number(value: float) -> Polynomial:
        """Return a polynomial without values; that of zero has no terms."""
        return Polynomial({ONE: value} if value else {})

    @staticmethod
    def of(value: fx.Node) -> Polynomial:
        """Return the polynomial that is a value itself."""
        return Polynomial({frozenset({(value, 1)}): 1.0})

    def __add__(self, other: Polynomial) -> Polynomial:
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            terms[monomial] = terms.get(monomial, 0.0) + coefficient
        return _bounded(terms)

    def __mul__(self, other: Polynomial) -> Polynomial:
        terms: dict[Monomial, float] = {}
        for first, coefficient in self.terms.items():
            for second, factor in other.terms.items():
                monomial = _product(first, second)
                terms[monomial] = terms.get(monomial, 0.0) + coefficient * factor
        return _bounded(terms)

    def power(self, exponent: int) -> Polynomial:
        """Return the polynomial times itself so many times; a negative exponent needs a single term."""
        if abs(exponent) > MAX_POWER:
            raise TooLargeError
        base, result = (self if exponent >= 0 else self._inverse()), Polynomial.number(1.0)
        for _ in range(abs(exponent)):
            result = result * base
        return result

    def values(self) -> set[fx.Node]:
        """Return the values that occur."""
        return {value for monomial in self.terms for value, _ in monomial}

    def as_number(self) -> float | None:
        """Return the number that this is, or None if a value occurs."""
        return self.terms.get(ONE, 0.0) if self.terms.keys() <= {ONE} else None

    def _inverse(self) -> Polynomial:
        if len(self.terms) != 1:
            raise TooLargeError
        ((monomial, coefficient),) = self.terms.items()
        if coefficient == 0:
            raise TooLargeError
        return Polynomial({frozenset((value, -exponent) for value, exponent in monomial): 1.0 / coefficient})

    def __repr__(self) -> str:
        terms = (f"{coefficient:.9g}{shown(monomial)}" for monomial, coefficient in self.terms.items())
        return " + ".join(terms) or "0"


def _product(first: Monomial, second: Monomial) -> Monomial:
    exponents = dict(first)
    for value, exponent in second:
        known = exponents.get(value, 0)
        if known * exponent < 0 or abs(known + exponent) > MAX_POWER:  # x / x is not 1 where x is 0
            raise TooLargeError
        exponents[value] = known + exponent
    return frozenset(exponents.items())


def _bounded(terms: Mapping[Monomial, float]) -> Polynomial:
    """Return the polynomial of these terms. One with the factor 0 stays, because 0 · NaN is not 0."""
    if len(terms) > MAX_TERMS:
        raise TooLargeError
    return Polynomial(terms)


def shown(monomial: Monomial) -> str:
    """Return how a monomial is written after its coefficient, such as `·x^3`."""
    powers = sorted((str(value), exponent) for value, exponent in monomial)
    return "".join(f"·{name}" if exponent == 1 else f"·{name}^{exponent}" for name, exponent in powers)
