"""Expressions in a graph, recognised in each of their spellings: formulas, casts, projections and attention."""
