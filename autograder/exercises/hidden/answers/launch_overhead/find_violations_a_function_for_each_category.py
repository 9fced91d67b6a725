def numbered(call):
    seen, found = {}, {}
    for launch in call:
        seen[launch["line"]] = seen.get(launch["line"], 0) + 1
        found[launch["line"], seen[launch["line"]]] = launch
    return found


def outer(call):
    known, found = set(), []
    for launch in call.values():
        found.append({each for each in launch["reads"] if each not in known})
        known.update(launch["writes"])
    return dict(zip(call, found, strict=True))


def find_violations(program):
    first, second = numbered(program["first"]), numbered(program["second"])
    once = [key for key in first if key not in second]
    both = [key for key in first if key in second]
    state = {each for key in once for each in first[key]["writes"]}
    reads, later = outer(first), outer(second)
    rows = {(key[0], "first call only") for key in once}
    rows |= {(key[0], "host read") for key in both if first[key]["host_read"]}
    rows |= {(key[0], "random state") for key in both if first[key]["own_generator"]}
    rows |= {(key[0], "stale number") for key in both if first[key]["numbers"] != second[key]["numbers"]}
    rows |= {(key[0], "two shapes") for key in both if first[key]["shapes"] != second[key]["shapes"]}
    rows |= {(key[0], "rebound input") for key in both if not later[key] <= reads[key] | state}
    return [list(row) for row in sorted(rows)]
