def mend(script: list[str]) -> list[str]:
    """Return a script that measures what this one meant to; a good answer has about 15 lines."""
    windows, inside = [], False
    for step in script:
        if step == "clock":
            inside = not inside
            windows += [[]] if inside else []
        elif inside and step.startswith("launch "):
            windows[-1] += [step, "use"]
    programs = dict.fromkeys(step for window in windows for step in window if step != "use")
    mended = ["draw"]
    for launch in programs:
        mended += [launch, "use"]
    for window in windows:
        mended += ["draw", "sync", "clock", *window, "sync", "clock"]
    return mended
