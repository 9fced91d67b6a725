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


# %% a class of kernels
class Kernel:
    def __init__(self, question, first, last):
        self.question, self.rows, self.rest = question, question["rows"][first:last], question["rows"][last:]
        self.names = [row["name"] for row in self.rows]

    def next_read(self, name, place):
        places = [p for p, row in enumerate(self.rows) if p >= place and name in row["reads"]]
        return places[0] if places else None

    def moved(self):
        loads = {n for row in self.rows for n in row["reads"]}.difference(self.names)
        read_later = {n for row in self.rest for n in row["reads"]}
        return loads | {n for n in self.names if n in read_later or n in self.question["outputs"]}

    def scratch(self):
        self.held, self.spilled, self.events = set(), set(), 0
        for place, row in enumerate(self.rows):
            for name in row["reads"]:
                self.hold(name, place, row)
            self.hold(row["name"], place + 1, row)
        return self.events

    def hold(self, name, place, row):
        self.held = {n for n in self.held if self.next_read(n, place) is not None}
        if name in self.held:
            return
        if len(self.held) >= self.question["registers"]:
            _, out = max((self.next_read(n, place), n) for n in self.held if n not in row["reads"])
            self.held.discard(out)
            if out not in self.spilled:
                self.spilled.add(out)
                self.events += 1
        if name in self.spilled:
            self.events += 1
        self.held.add(name)

    def time(self):
        sizes, prices = self.question["sizes"], self.question["prices"]
        largest = max(sizes[name] for name in self.names)
        moved = 4 * sum(sizes[name] for name in self.moved())
        each = len(self.rows) * prices["operation"] + self.scratch() * prices["scratch"]
        return prices["launch"] + moved * prices["byte"] + largest * each


def divide(question):
    count = len(question["rows"])
    least, cut = [0.0] + [float("inf")] * count, [0] * (count + 1)
    for last in range(1, count + 1):
        for first in range(last):
            time = least[first] + Kernel(question, first, last).time()
            if time < least[last]:
                least[last], cut[last] = time, first
    kernels, last = [], count
    while last:
        kernels.insert(0, Kernel(question, cut[last], last).names)
        last = cut[last]
    return {"kernels": kernels, "time": least[count]}


# %% a trace of reads
import itertools


def spills_and_reloads(part, registers):
    trace, at, live, slots, events = [n for row in part for n in [*row["reads"], None]], 0, [], [], 0

    def distance(name):
        return trace.index(name, at) if name in trace[at:] else None

    def enter(name, fixed):
        nonlocal live, events
        live = [n for n in live if distance(n) is not None]
        if name in live:
            return
        if len(live) == registers:
            loser = max((n for n in live if n not in fixed), key=distance)
            live.remove(loser)
            if loser not in slots:
                slots.append(loser)
                events += 1
        events += slots.count(name)
        live.append(name)

    for row in part:
        for name in row["reads"]:
            enter(name, row["reads"])
        at += len(row["reads"]) + 1
        enter(row["name"], row["reads"])
    return events


def kernel_ns(question, first, last):
    part, size, price = question["rows"][first:last], question["sizes"], question["prices"]
    own, total = {row["name"] for row in part}, price["launch"]
    needed = {*question["outputs"], *(n for row in question["rows"][last:] for n in row["reads"])}
    for name in {n for row in part for n in row["reads"]} - own:
        total += 4 * size[name] * price["byte"]
    for name in own & needed:
        total += 4 * size[name] * price["byte"]
    widest = max(size[name] for name in own)
    total += widest * len(part) * price["operation"]
    return total + widest * spills_and_reloads(part, question["registers"]) * price["scratch"]


def divide(question):
    count = len(question["rows"])
    table = {(a, b): kernel_ns(question, a, b) for b in range(1, count + 1) for a in range(b)}
    best = {0: (0.0, (0,))}
    for b in range(1, count + 1):
        best[b] = min((best[a][0] + table[a, b], (*best[a][1], b)) for a in range(b))
    time, ends = best[count]
    names = [row["name"] for row in question["rows"]]
    return {"kernels": [names[a:b] for a, b in itertools.pairwise(ends)], "time": time}


# %% branches that are cut off
def scratch_in(part, registers):
    last_read = {n: place for place, row in enumerate(part) for n in row["reads"]}
    held, spilled, events = {}, set(), 0
    for place, row in enumerate(part):
        for name, start in [*((n, place) for n in row["reads"]), (row["name"], place + 1)]:
            for old in [n for n in held if last_read.get(n, -1) < start]:
                del held[old]
            if name in held:
                continue
            if len(held) == registers:
                away = [n for n in held if n not in row["reads"]]
                ahead = {n: min(p for p in range(start, len(part)) if n in part[p]["reads"]) for n in away}
                out = max(away, key=ahead.__getitem__)
                del held[out]
                events += out not in spilled
                spilled |= {out}
            events += name in spilled
            held[name] = True
    return events


def divide(question):
    rows, sizes, prices, known = question["rows"], question["sizes"], question["prices"], {}

    def time_of(first, last):
        if (first, last) not in known:
            part = rows[first:last]
            mine = {row["name"]: sizes[row["name"]] for row in part}
            outside = {n: sizes[n] for row in part for n in row["reads"] if n not in mine}
            read = {n for row in rows[last:] for n in row["reads"]}.union(question["outputs"])
            stored = {n: size for n, size in mine.items() if n in read}
            moved = 4 * (sum(outside.values()) + sum(stored.values()))
            work = prices["operation"] * len(part) + prices["scratch"] * scratch_in(part, question["registers"])
            known[first, last] = prices["launch"] + prices["byte"] * moved + max(mine.values()) * work
        return known[first, last]

    best = [float("inf"), []]
    reached = {}

    def go(first, spent, ends):
        if spent >= min(best[0], reached.get(first, float("inf"))):
            return
        reached[first] = spent
        if first == len(rows):
            best[:] = [spent, ends]
            return
        for last in range(len(rows), first, -1):
            go(last, spent + time_of(first, last), [*ends, last])

    go(0, 0.0, [])
    kernels, first = [], 0
    for last in best[1]:
        kernels.append([row["name"] for row in rows[first:last]])
        first = last
    return {"kernels": kernels, "time": best[0]}


# %% instructions first
def code_of(part):
    seen, code = set(), []
    for row in part:
        for name in row["reads"]:
            if name not in seen:
                code.append((name, ()))
                seen.add(name)
        code.append((row["name"], tuple(row["reads"])))
        seen.add(row["name"])
    return code


def scanned(code, registers):
    where, memory, events = {}, set(), 0

    def ahead(name, now):
        return next((n for n in range(now, len(code)) if name in code[n][1]), None)

    def room(now, fixed):
        nonlocal events
        if len(where) < registers:
            return
        loser = max((n for n in where if n not in fixed), key=lambda n: ahead(n, now))
        del where[loser]
        events += loser not in memory
        memory.add(loser)

    for now, (into, reads) in enumerate(code):
        for name in reads:
            if name not in where:
                room(now, reads)
                where[name] = True
                events += 1
        for name in reads:
            if ahead(name, now + 1) is None:
                where.pop(name, None)
        room(now + 1, reads)
        if ahead(into, now + 1) is not None:
            where[into] = True
    return events


def divide(question):
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]

    def cost(part, behind):
        code = code_of(part)
        results = [row["name"] for row in part]
        loads = [name for name, reads in code if not reads]
        stores = [n for n in results if n in question["outputs"] or any(n in row["reads"] for row in behind)]
        largest = max(sizes[n] for n in results)
        return (
            prices["launch"]
            + prices["byte"] * 4 * sum(sizes[n] for n in [*loads, *stores])
            + prices["operation"] * largest * len(results)
            + prices["scratch"] * largest * scanned(code, question["registers"])
        )

    plans = [{"time": 0.0, "kernels": []}]
    for last in range(1, len(rows) + 1):
        options = []
        for first, plan in enumerate(plans):
            part = rows[first:last]
            kernels = [*plan["kernels"], [row["name"] for row in part]]
            options.append({"time": plan["time"] + cost(part, rows[last:]), "kernels": kernels})
        plans.append(min(options, key=lambda option: option["time"]))
    return plans[-1]
