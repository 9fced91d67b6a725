# %% written with loops
def visit(row):
    supported = row["supported"]
    first = 0 if supported else -1
    for read in row["inputs"]:
        place = read["state"]["first"]
        if supported and not read["supported"]:
            place += 1
        if place > first:
            first = place
    last = None
    for user in row["users"]:
        if user["state"] is None:
            continue
        place = user["state"]["last"]
        if user["supported"] and not supported:
            place -= 1
        if last is None or place < last:
            last = place
    if last is None:
        last = first
    state = {"first": first, "last": last, "part": None}
    if row["picks"]:
        state["part"] = row["inputs"][0]["state"]["part"]
    elif supported:
        state["part"] = last
    return state


# %% levels of both kinds
# even levels are parts of the target, odd ones lie between them
def level(row, at):
    return at + (at % 2 == row["supported"])


def visit(row):
    begin = 0 if row["supported"] else -1
    low = max([begin, *(level(row, read["state"]["low"]) for read in row["inputs"])])
    highs = [user["state"]["high"] for user in row["users"] if user["state"] is not None]
    high = min(highs, default=low)
    if highs and high % 2 == row["supported"]:
        high -= 1
    state = {"low": low, "high": high, "part": high // 2 if row["supported"] else None}
    if row["picks"] and row["supported"]:
        state["part"] = row["inputs"][0]["state"]["part"]
    return state


# %% distance to the end
def visit(row):
    def step(before, after):
        return 1 if after["supported"] and not before["supported"] else 0

    done = [r["state"]["done"] + step(r, row) for r in row["inputs"]]
    done = max(done) if done else int(row["supported"]) - 1
    spare = [u["state"]["done"] + u["state"]["spare"] - step(row, u) - done for u in row["users"] if u["state"]]
    spare = min(spare) if spare else 0
    part = done + spare
    if row["picks"]:
        part = row["inputs"][0]["state"]["part"]
    return {"done": done, "spare": spare, "part": part}


# %% nothing instead of minus one
def earliest(row):
    places = []
    for read in row["inputs"]:
        place = read["state"]["early"]
        if row["supported"] and not read["supported"]:
            place = 0 if place is None else place + 1
        if place is not None:
            places.append(place)
    if places:
        return max(places)
    return 0 if row["supported"] else None


def latest(row, early):
    places = []
    for user in row["users"]:
        if user["state"]:
            late = user["state"]["late"]
            if late is not None:
                places.append(late - 1 if user["supported"] and not row["supported"] else late)
    return min(places) if places else early


def visit(row):
    early = earliest(row)
    late = latest(row, early)
    if row["picks"]:
        return {"early": early, "late": late, "part": row["inputs"][0]["state"]["part"]}
    return {"early": early, "late": late, "part": late if row["supported"] else None}


# %% folded
from functools import reduce


def visit(row):
    taken = row["supported"]

    def forward(so_far, read):
        return max(so_far, read["state"]["a"] + (1 if taken > read["supported"] else 0))

    a = reduce(forward, row["inputs"], -1 + taken)
    known = list(filter(lambda user: user["state"], row["users"]))

    def backward(so_far, user):
        return min(so_far, user["state"]["b"] - (1 if user["supported"] > taken else 0))

    b = reduce(backward, known, 10**9) if known else a
    if row["picks"]:
        source = row["inputs"][0]["state"]
        return {"a": a, "b": b, "part": source["part"]}
    return {"a": a, "b": b, "part": b if taken else None}


# %% a class of places
class Place:
    def __init__(self, row):
        self.row = row
        self.known = row["state"] or {}

    def early(self):
        reads = self.row["inputs"]
        own = 0 if self.row["supported"] else -1
        return max([own] + [r["state"]["early"] + self.gap(r, self.row) for r in reads])

    def late(self):
        users = [u for u in self.row["users"] if u["state"]]
        return min([u["state"]["late"] - self.gap(self.row, u) for u in users] or [self.early()])

    @staticmethod
    def gap(before, after):
        return int(not before["supported"] and after["supported"])

    def part(self):
        if not self.row["supported"]:
            return None
        return self.row["inputs"][0]["state"]["part"] if self.row["picks"] else self.late()


def visit(row):
    place = Place(row)
    return {"early": place.early(), "late": place.late(), "part": place.part()}


# %% counted from one
def visit(row):
    reads, users, mine = row["inputs"], [u for u in row["users"] if u["state"]], row["supported"]
    lowest = [1 if mine else 0]
    lowest += [r["state"]["range"] // 100000 + (mine and not r["supported"]) for r in reads]
    highest = [u["state"]["range"] % 100000 - (u["supported"] and not mine) for u in users] or [max(lowest)]
    both = 100000 * max(lowest) + min(highest)
    part = reads[0]["state"]["part"] if row["picks"] else min(highest)
    return {"range": both, "part": part if mine else None, "name": row["name"]}


# %% only rows of the target wait
def visit(row):
    early = 0 if row["supported"] else -1
    for read in row["inputs"]:
        early = max(early, read["state"]["early"] + (row["supported"] and not read["supported"]))
    users = [user for user in row["users"] if user["state"]]
    late = early
    if row["supported"] and users:
        late = min(user["state"]["late"] for user in users)
    part = row["inputs"][0]["state"]["part"] if row["picks"] else late
    return {"early": early, "late": late, "part": part if row["supported"] else None}
