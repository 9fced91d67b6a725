"""Test an exercise's checks: with controls of known marks, and with small changes of its solution."""
