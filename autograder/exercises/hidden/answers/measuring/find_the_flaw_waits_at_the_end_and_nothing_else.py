def mend(script):
    steps, inside = [], False
    for step in script:
        if step == "clock":
            inside = not inside
            if not inside:
                steps.append("sync")
        steps.append(step)
    return steps
