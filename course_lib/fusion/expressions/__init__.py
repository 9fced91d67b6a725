"""Expressions in a graph, recognised in each of their spellings: formulas, polynomials and attention."""
