"""Proofs of an exercise: controls of known marks, and small changes of its solution that checks must notice."""
