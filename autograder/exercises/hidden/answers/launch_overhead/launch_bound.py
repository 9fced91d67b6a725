def bound_by(program: dict) -> str:
    """Return "launches" or "bytes", whichever takes longer; about 4 lines."""
    count = 1 if program["replayed"] else len(program["launches"])
    host_us = count * program["launch_us"]
    device_us = sum(program["launches"]) / (program["bandwidth_gb_s"] * 1000)
    return "launches" if host_us > device_us else "bytes"
