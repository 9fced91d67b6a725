def experiment(question: dict) -> dict:
    """Measure one program at two settings of one option; about fifteen lines."""
    plan = {"program": "neighbours", "option": "realize_reads_threshold", "settings": [4, 1]}
    expected = {"kernels": "more", "bytes": "more"}
    program, inputs = program_from_steps(question["programs"][plan["program"]])
    runs = [scheduled(program, inputs, config={plan["option"]: setting}) for setting in plan["settings"]]
    least = sum(t.nbytes for t in (*inputs, program(*inputs)))
    kernels, moved = [run.kernels for run in runs], [run.cost.bytes_moved for run in runs]
    seen = {
        what: "more" if second > first else "fewer" if second < first else "same"
        for what, (first, second) in (("kernels", kernels), ("bytes", moved))
    }
    return {
        **plan,
        "hypothesis": expected,
        "because": "Each mean is used by two others; if it is written, they read it.",
        "kernels": kernels,
        "bytes": moved,
        "c4": [number / least for number in moved],
        "verdict": "confirmed" if seen == expected else "refuted",
    }
