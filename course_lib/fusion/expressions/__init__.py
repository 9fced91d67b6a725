"""Expressions in a graph, recognised in each of their spellings: formulas, polynomials, casts and attention."""
