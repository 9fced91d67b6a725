"""Sums of products of values, in one form for every order that a program may write them in.

`0.5 * x * (1 + e)`, `x * (0.5 + e / 2)` and `(x + x * e) * 0.5` are one polynomial: 0.5 · x + 0.5 · x · e.
"""

from collections.abc import Mapping

from torch import fx

MAX_TERMS = 12  # the longest formula that we look for has four
MAX_POWER = 4

Monomial = frozenset[tuple[fx.Node, int]]  # values with their exponents, which may be negative
Polynomial = Mapping[Monomial, float]  # with the coefficient of each
ONE: Monomial = frozenset()  # the number 1


class TooLargeError(Exception):
    """What is computed is no polynomial of a size that we look for."""


def number(value: float) -> Polynomial:
    """Return the polynomial of a number."""
    return {ONE: value}


def variable(node: fx.Node) -> Polynomial:
    """Return the polynomial of one value."""
    return {frozenset({(node, 1)}): 1.0}


def add(first: Polynomial, second: Polynomial, factor: float = 1.0) -> Polynomial:
    """Return `first + factor * second`. A value that cancels keeps a term with the factor 0: 0 · NaN is not 0.

    >>> x = variable(list(fx.symbolic_trace(lambda x: x).graph.nodes)[0])
    >>> written(power(add(x, number(2.0)), 2))
    '1·x^2 + 4·x + 4'
    """
    terms = dict(first)
    for monomial, coefficient in second.items():
        terms[monomial] = terms.get(monomial, 0.0) + factor * coefficient
    return _limited({monomial: one for monomial, one in terms.items() if one or monomial})


def multiply(first: Polynomial, second: Polynomial) -> Polynomial:
    """Return the product; raise `TooLargeError` if a value meets its own reciprocal: x / x is not 1 where x is 0."""
    terms: dict[Monomial, float] = {}
    for one, coefficient in first.items():
        for other, factor in second.items():
            monomial = _product(one, other)
            terms[monomial] = terms.get(monomial, 0.0) + coefficient * factor
    return _limited(terms)


def power(base: Polynomial, exponent: int) -> Polynomial:
    """Return the polynomial to an integer power; a negative one needs a single term."""
    if abs(exponent) > MAX_POWER:
        raise TooLargeError
    result = number(1.0)
    for _ in range(abs(exponent)):
        result = multiply(result, base if exponent > 0 else _reciprocal(base))
    return result


def values_of(polynomial: Polynomial) -> list[fx.Node]:
    """Return the values that occur, each once."""
    return list(dict.fromkeys(value for monomial in polynomial for value, _ in sorted(monomial)))


def written(polynomial: Polynomial) -> str:
    """Return a polynomial as text, such as `0.5·x + 0.5·x·erf`."""
    return " + ".join(f"{coefficient:.9g}{_powers(monomial)}" for monomial, coefficient in polynomial.items())


def _powers(monomial: Monomial) -> str:
    powers = sorted((str(value), exponent) for value, exponent in monomial)
    return "".join(f"·{name}" if exponent == 1 else f"·{name}^{exponent}" for name, exponent in powers)


def _product(first: Monomial, second: Monomial) -> Monomial:
    exponents = dict(first)
    for value, exponent in second:
        known = exponents.get(value, 0)
        if known * exponent < 0 or abs(known + exponent) > MAX_POWER:
            raise TooLargeError
        exponents[value] = known + exponent
    return frozenset(exponents.items())


def _reciprocal(polynomial: Polynomial) -> Polynomial:
    if len(polynomial) != 1 or 0.0 in polynomial.values():
        raise TooLargeError
    ((monomial, coefficient),) = polynomial.items()
    return {frozenset((value, -exponent) for value, exponent in monomial): 1.0 / coefficient}


def _limited(terms: Polynomial) -> Polynomial:
    if len(terms) > MAX_TERMS:
        raise TooLargeError
    return terms
