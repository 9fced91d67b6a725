"""Random programs and formulas, the results that are required of them, and one trial of each."""
