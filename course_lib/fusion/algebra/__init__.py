"""Formulas compared as polynomials: a pattern fits in whatever order and spelling the program writes it."""

from course_lib.fusion.algebra.formula_pattern import FormulaPattern

__all__ = ["FormulaPattern"]
