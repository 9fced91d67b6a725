# %% recursion that remembers
import functools

NEVER = 1000


def next_use(body, name, start):
    for place in range(start, len(body)):
        if name in body[place]["reads"]:
            return place
    return NEVER


def make_room(body, registers, saved, limit, start, fixed):
    if len(registers) < limit:
        return 0
    victim = max((n for n in registers if n not in fixed), key=lambda name: next_use(body, name, start))
    registers.remove(victim)
    if victim in saved:
        return 0
    saved.append(victim)
    return 1


def scratch_of(body, limit):
    registers, saved, events = [], [], 0
    for place, row in enumerate(body):
        for name in row["reads"]:
            if name in registers:
                continue
            events += make_room(body, registers, saved, limit, place, row["reads"])
            events += name in saved
            registers.append(name)
        registers = [name for name in registers if next_use(body, name, place + 1) < NEVER]
        events += make_room(body, registers, saved, limit, place + 1, row["reads"])
        if next_use(body, row["name"], place + 1) < NEVER:
            registers.append(row["name"])
    return events


def divide(question):
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]

    def cost(first, last):
        body, rest = rows[first:last], rows[last:]
        made = [row["name"] for row in body]
        loaded = {name for row in body for name in row["reads"] if name not in made}
        needed = set(question["outputs"]).union(*(row["reads"] for row in rest))
        elements = sum(sizes[name] for name in loaded) + sum(sizes[name] for name in made if name in needed)
        largest = max(sizes[name] for name in made)
        work = len(body) * prices["operation"] + scratch_of(body, question["registers"]) * prices["scratch"]
        return prices["launch"] + 4 * elements * prices["byte"] + largest * work

    @functools.cache
    def plan(first):
        if first == len(rows):
            return 0.0, ()
        options = []
        for last in range(first + 1, len(rows) + 1):
            time, ends = plan(last)
            options.append((cost(first, last) + time, (last, *ends)))
        return min(options)

    time, ends = plan(0)
    starts = (0, *ends[:-1])
    return {"kernels": [[row["name"] for row in rows[a:b]] for a, b in zip(starts, ends, strict=True)], "time": time}


# %% shortest path
import heapq
import itertools


class Registers:
    def __init__(self, body, size):
        self.body, self.size, self.inside, self.scratch, self.events = body, size, set(), set(), 0

    def distance(self, name, place):
        return next((p for p in range(place, len(self.body)) if name in self.body[p]["reads"]), len(self.body))

    def put(self, name, place, fixed):
        if name in self.inside:
            return
        if len(self.inside) >= self.size:
            out = sorted(self.inside - set(fixed), key=lambda n: self.distance(n, place))[-1]
            self.inside.remove(out)
            self.events += out not in self.scratch
            self.scratch.add(out)
        self.events += name in self.scratch
        self.inside.add(name)

    def run(self):
        for place, row in enumerate(self.body):
            for name in row["reads"]:
                self.put(name, place, row["reads"])
            self.inside = {n for n in self.inside if self.distance(n, place + 1) < len(self.body)}
            self.put(row["name"], place + 1, row["reads"])
            self.inside = {n for n in self.inside if self.distance(n, place + 1) < len(self.body)}
        return self.events


def edge(question, a, b):
    body, size, price = question["rows"][a:b], question["sizes"], question["prices"]
    names = {row["name"] for row in body}
    wanted = set(question["outputs"]).union(*(row["reads"] for row in question["rows"][b:]))
    outside = set().union(*(row["reads"] for row in body)) - names
    space = max(map(size.get, names))
    memory = 4 * (sum(map(size.get, outside)) + sum(map(size.get, names & wanted)))
    events = Registers(body, question["registers"]).run()
    return (
        price["launch"] + price["byte"] * memory + space * (price["operation"] * len(body) + price["scratch"] * events)
    )


def divide(question):
    count = len(question["rows"])
    queue, done = [(0.0, 0, [0])], set()
    while True:
        time, place, path = heapq.heappop(queue)
        if place == count:
            break
        if place in done:
            continue
        done.add(place)
        for end in range(place + 1, count + 1):
            heapq.heappush(queue, (time + edge(question, place, end), end, [*path, end]))
    names = [row["name"] for row in question["rows"]]
    return {"kernels": [names[a:b] for a, b in itertools.pairwise(path)], "time": time}


# %% all divisions
import itertools


def events(body, limit):
    held, spilled, count = [], set(), 0
    last_use = {}
    for place, row in enumerate(body):
        for name in row["reads"]:
            last_use[name] = place

    def uses(name, place):
        return [p for p in range(place, len(body)) if name in body[p]["reads"]] or [10**6]

    for place, row in enumerate(body):
        for name in [*row["reads"], None]:
            if name is None:
                held = [n for n in held if last_use.get(n, -1) > place]
                name = row["name"]
            if name in held:
                continue
            if len(held) == limit:
                free = [n for n in held if n not in row["reads"]]
                out = free[0]
                for other in free[1:]:
                    if uses(other, place)[0] > uses(out, place)[0]:
                        out = other
                held.remove(out)
                if out not in spilled:
                    spilled.add(out)
                    count += 1
            if name in spilled:
                count += 1
            if last_use.get(name, -1) >= place:
                held.append(name)
    return count


def divide(question):
    rows = question["rows"]
    n, sizes, price = len(rows), question["sizes"], question["prices"]
    table = {}
    for a in range(n):
        for b in range(a + 1, n + 1):
            body = rows[a:b]
            inner = [r["name"] for r in body]
            needed = set(question["outputs"])
            for r in rows[b:]:
                needed.update(r["reads"])
            reads = set()
            for r in body:
                reads.update(x for x in r["reads"] if x not in inner)
            elements = sum(sizes[x] for x in reads) + sum(sizes[x] for x in inner if x in needed)
            big = max(sizes[x] for x in inner)
            table[a, b] = price["launch"] + 4 * price["byte"] * elements
            table[a, b] += big * (
                price["operation"] * len(body) + price["scratch"] * events(body, question["registers"])
            )
    best = None
    for mask in range(2 ** (n - 1)):
        cuts = [0, *(i + 1 for i in range(n - 1) if mask >> i & 1), n]
        time = sum(table[pair] for pair in itertools.pairwise(cuts))
        if best is None or time < best[0]:
            best = time, cuts
    time, cuts = best
    return {"time": time, "kernels": [[r["name"] for r in rows[a:b]] for a, b in itertools.pairwise(cuts)]}


# %% touches in a row
def touches(rows):
    for place, row in enumerate(rows):
        for name in row["reads"]:
            yield place, name, False
        yield place, row["name"], True


def count_scratch(rows, limit):
    reads, inside, saved, total = {}, [], set(), 0
    for place, name, is_result in touches(rows):
        if not is_result:
            reads.setdefault(name, []).append(place)
    for place, name, is_result in touches(rows):
        later = {n: next((p for p in reads.get(n, ()) if p >= place + is_result), None) for n in inside}
        inside = [n for n in inside if later[n] is not None]
        if name in inside:
            continue
        if len(inside) == limit:
            out = sorted((n for n in inside if n not in rows[place]["reads"]), key=later.get)[-1]
            inside.remove(out)
            total += out not in saved
            saved.add(out)
        total += name in saved
        inside.append(name)
    return total


def divide(question):
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]
    count, wanted = len(rows), set(question["outputs"])
    plans = {count: (0.0, [])}
    for first in reversed(range(count)):
        found = []
        for last in range(first + 1, count + 1):
            part = rows[first:last]
            names = [row["name"] for row in part]
            behind = wanted.union(*(row["reads"] for row in rows[last:]))
            moved = {n for row in part for n in row["reads"] if n not in names} | {n for n in names if n in behind}
            space = max(map(sizes.get, names))
            time = prices["launch"] + 4 * prices["byte"] * sum(map(sizes.get, moved))
            time += space * len(part) * prices["operation"]
            time += space * count_scratch(part, question["registers"]) * prices["scratch"]
            found.append((time + plans[last][0], [names, *plans[last][1]]))
        plans[first] = min(found)
    time, kernels = plans[0]
    return {"kernels": kernels, "time": time}
