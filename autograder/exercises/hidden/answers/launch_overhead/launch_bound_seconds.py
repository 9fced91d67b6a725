def bound_by(program):
    launches = program["launches"]
    started = [launches] if program["replayed"] else launches
    host_s = len(started) * program["launch_us"] * 1e-6
    device_s = sum(launches) / (program["bandwidth_gb_s"] * 1e9)
    if host_s > device_s:
        return "launches"
    return "bytes"
