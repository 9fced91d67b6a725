def bound_by(program):
    host = device = 0.0
    for size in program["launches"]:
        device += size / program["bandwidth_gb_s"] / 1e3
        if not program["replayed"]:
            host += program["launch_us"]
    host = host or program["launch_us"]
    return ["bytes", "launches"][host > device]
