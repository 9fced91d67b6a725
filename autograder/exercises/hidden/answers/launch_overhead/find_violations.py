def find_violations(program: dict) -> list:
    """Return rows [line, category] from the recordings "first" and "second"; about 22 lines."""

    def by_line(call):
        written, lines = set(), {}
        for launch in call:
            outside = set(launch["reads"]) - written
            written |= set(launch["writes"])
            lines.setdefault(launch["line"], []).append((launch, outside))
        return lines

    before, after = by_line(program["first"]), by_line(program["second"])
    created = {at for line in before if line not in after for launch, _ in before[line] for at in launch["writes"]}
    found = [[line, "first call only"] for line in before if line not in after]
    for line, pairs in after.items():
        for (old, old_outside), (new, new_outside) in zip(before[line], pairs, strict=True):
            wrong = {
                "host read": new["host_read"],
                "random state": new["own_generator"],
                "stale number": old["numbers"] != new["numbers"],
                "two shapes": old["shapes"] != new["shapes"],
                "rebound input": new_outside - old_outside - created,
            }
            found += [[line, name] for name, is_wrong in wrong.items() if is_wrong]
    return found
