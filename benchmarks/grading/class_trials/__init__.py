"""Hand-ins that nobody expects: odd notebooks, in odd folders, under odd names, drawn from a seed."""
