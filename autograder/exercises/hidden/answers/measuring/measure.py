def measure(request: dict) -> list | dict:
    """Say in which order to run, or report on the times; a good answer has about 15 lines."""
    programs = request["programs"]
    if "samples" in request:
        return [name for _ in range(request["samples"]) for name in random.sample(programs, 2)]
    times = {name: [] for name in programs}
    for name, us in request["times"]:
        times[name].append(us)
    medians = {name: statistics.median(mine) for name, mine in times.items()}
    return {
        "median_us": medians,
        "spread_us": {n: statistics.median([abs(t - medians[n]) for t in mine]) for n, mine in times.items()},
        "n": {name: len(mine) for name, mine in times.items()},
        "ratio": medians[programs[0]] / medians[programs[1]],
        "environment": environment().to_json(),
    }
