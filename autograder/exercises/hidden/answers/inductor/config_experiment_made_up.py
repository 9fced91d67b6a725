def experiment(question):
    """Numbers of the right form that nobody measured."""
    return {
        "program": "totals",
        "option": "realize_reads_threshold",
        "settings": [4, 100],
        "hypothesis": {"kernels": "fewer", "bytes": "fewer"},
        "because": "It is what one would expect here.",
        "kernels": [2, 1],
        "bytes": [84480, 69120],
        "c4": [1.22, 1.0],
        "verdict": "confirmed",
    }
