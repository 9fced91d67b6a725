"""Programs and formulas drawn at random, with what must become of them, and one trial of each."""
