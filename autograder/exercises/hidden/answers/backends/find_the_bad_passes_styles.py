# %% a generator that asks
def search(passes):
    if (yield passes):
        return []
    bad, end = [], len(passes)
    while True:
        low, high = 0, end
        while high - low > 1:
            half = low + (high - low) // 2
            if (yield passes[:half] + bad):
                low = half
            else:
                high = half
        end = high - 1
        bad.insert(0, passes[end])
        if not (yield bad):
            return bad


def next_step(question):
    known = {tuple(sorted(names)): holds for names, holds in question["seen"]}
    steps = search(question["passes"])
    names = next(steps)
    try:
        while tuple(sorted(names)) in known:
            names = steps.send(known[tuple(sorted(names))])
    except StopIteration as end:
        return {"bad": end.value}
    return {"verify": list(names)}


# %% an error that asks
class AskError(Exception):
    pass


def next_step(question):
    def holds(names):
        for verified, result in question["seen"]:
            if set(verified) == set(names):
                return result
        raise AskError(list(names))

    def last_of(first, kept):
        if len(first) == 1:
            return first[0]
        low, high = 0, len(first)
        while high - low > 1:
            middle = (low + high) // 2
            if holds(first[:middle] + kept):
                low = middle
            else:
                high = middle
        return first[high - 1]

    passes = question["passes"]
    try:
        if holds(passes):
            return {"bad": []}
        kept = []
        while not kept or holds(kept):
            kept = [*kept, last_of(passes, kept)]
            passes = passes[: passes.index(kept[-1])]
        return {"bad": kept}
    except AskError as ask:
        return {"verify": ask.args[0]}


# %% the standard library's bisect
import bisect


class UnknownError(Exception):
    def __init__(self, names):
        self.names = names


def next_step(question):
    passes, table = question["passes"], {frozenset(n): h for n, h in question["seen"]}

    def wrong(names):
        if frozenset(names) not in table:
            raise UnknownError(names)
        return not table[frozenset(names)]

    bad, rest = [], list(passes)
    try:
        if not wrong(passes):
            return {"bad": bad}
        while not bad or not wrong(bad):
            sizes = range(1, len(rest))
            found = bisect.bisect_left(sizes, True, key=lambda size, rest=rest, bad=bad: wrong(rest[:size] + bad))
            bad = [rest[found], *bad]
            rest = rest[:found]
    except UnknownError as unknown:
        return {"verify": unknown.names}
    return {"bad": bad}


# %% from the end
def next_step(question):
    order = question["passes"][::-1]
    results = {}
    for names, holds in question["seen"]:
        results[" ".join(sorted(names))] = holds

    def key(names):
        return " ".join(sorted(names))

    if key(order) not in results:
        return {"verify": order}
    if results[key(order)]:
        return {"bad": []}
    bad = []
    while True:
        lowest, highest = 1, len(order)
        while lowest < highest:
            middle = (lowest + highest) // 2
            tried = bad + order[:middle]
            if key(tried) not in results:
                return {"verify": tried}
            if results[key(tried)]:
                lowest = middle + 1
            else:
                highest = middle
        bad.append(order[lowest - 1])
        order = order[: lowest - 1]
        if key(bad) not in results:
            return {"verify": bad}
        if not results[key(bad)]:
            return {"bad": bad}


# %% bits of a number
def next_step(question):
    passes = question["passes"]
    number = {name: 1 << place for place, name in enumerate(passes)}
    holds = {sum(number[name] for name in names): result for names, result in question["seen"]}
    everything = (1 << len(passes)) - 1

    def named(mask):
        return [name for name in passes if number[name] & mask]

    if everything not in holds:
        return {"verify": passes}
    if holds[everything]:
        return {"bad": []}
    bad, size = 0, len(passes)
    while bad not in holds or holds[bad]:
        low, high = 0, size
        while low + 1 < high:
            middle = (low + high + 1) // 2
            mask = bad | ((1 << middle) - 1)
            if mask not in holds:
                return {"verify": named(mask)}
            if holds[mask]:
                low = middle
            else:
                high = middle
        bad |= 1 << (high - 1)
        size = high - 1
        if bad not in holds:
            return {"verify": named(bad)}
    return {"bad": named(bad)}


# %% a state that remembers
class State:
    def __init__(self, passes):
        self.passes, self.bad, self.low, self.high, self.phase = passes, [], 0, len(passes), "all"

    def learn(self, holds):
        if self.phase == "all":
            self.phase = "nothing" if holds else "half"
        elif self.phase == "half":
            middle = (self.low + self.high) // 2
            if holds:
                self.low = middle
            else:
                self.high = middle
        elif self.phase == "alone":
            self.phase = "half" if holds else "found"
            self.low = 0
        if self.phase == "half" and self.high - self.low <= 1:
            self.high -= 1
            self.bad = [self.passes[self.high], *self.bad]
            self.phase = "alone"

    def step(self):
        match self.phase:
            case "nothing" | "found":
                return {"bad": self.bad}
            case "all":
                return {"verify": self.passes}
            case "half":
                return {"verify": self.passes[: (self.low + self.high) // 2] + self.bad}
            case _:
                return {"verify": self.bad}


def next_step(question):
    state, results = State(question["passes"]), {frozenset(n): h for n, h in question["seen"]}
    while True:
        step = state.step()
        if "bad" in step or frozenset(step["verify"]) not in results:
            return step
        state.learn(results[frozenset(step["verify"])])


# %% kept between calls
PLANS = {}


def plan(passes):
    def prefix(end, kept):
        low = 0
        while end - low > 1:
            middle = (low + end) // 2
            if (yield passes[:middle] + kept):
                low = middle
            else:
                end = middle
        return end - 1

    whole = yield passes
    if whole:
        return []
    kept, end = [], len(passes)
    while True:
        end = yield from prefix(end, kept)
        kept = [passes[end], *kept]
        if not (yield kept):
            return kept


def next_step(question):
    key = tuple(question["passes"])
    if not question["seen"]:
        PLANS[key] = plan(question["passes"])
        names = next(PLANS[key])
    else:
        try:
            names = PLANS[key].send(question["seen"][-1][1])
        except StopIteration as end:
            return {"bad": end.value}
    results = {frozenset(n): h for n, h in question["seen"]}
    while frozenset(names) in results:
        try:
            names = PLANS[key].send(results[frozenset(names)])
        except StopIteration as end:
            return {"bad": end.value}
    return {"verify": list(names)}


# %% recursion
def next_step(question):
    results = {tuple(sorted(n)): h for n, h in question["seen"]}

    def ask(names, then):
        key = tuple(sorted(names))
        return then(results[key]) if key in results else {"verify": names}

    def narrow(passes, low, high, bad):
        if high - low == 1:
            more = [passes[high - 1], *bad]
            return ask(more, lambda holds: narrow(passes, 0, high - 1, more) if holds else {"bad": more})
        middle = (low + high) // 2
        return ask(
            passes[:middle] + bad,
            lambda holds: narrow(passes, middle, high, bad) if holds else narrow(passes, low, middle, bad),
        )

    names = question["passes"]
    return ask(names, lambda holds: {"bad": []} if holds else narrow(names, 0, len(names), []))
