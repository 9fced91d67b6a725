def next_step(question: dict) -> dict:
    """Return {"verify": names} for the next verification, or {"bad": names}; about 20 lines."""
    passes = question["passes"]
    seen = {frozenset(names): holds for names, holds in question["seen"]}
    if frozenset(passes) not in seen:
        return {"verify": passes}
    bad, wrong = [], len(passes)
    while not seen.get(frozenset(passes)) and seen.get(frozenset(bad), True):
        right = 0
        while wrong - right > 1:
            middle = (right + wrong) // 2
            tried = passes[:middle] + bad
            if frozenset(tried) not in seen:
                return {"verify": tried}
            right, wrong = (middle, wrong) if seen[frozenset(tried)] else (right, middle)
        wrong -= 1
        bad = [passes[wrong], *bad]
        if frozenset(bad) not in seen:
            return {"verify": bad}
    return {"bad": bad}
