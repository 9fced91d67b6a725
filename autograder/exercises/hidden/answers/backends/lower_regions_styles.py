# %% first the steps, then the registers
def steps_of(region):
    for name, op, reads in region["nodes"]:
        if op == "mean.row":
            yield name + " sum", "sum.row", reads
            yield name, "div", [name + " sum", region["space"][-1]]
        elif op == "relu":
            yield name, "max", [reads[0], 0]
        else:
            yield name, op, reads
        if name in region["outputs"]:
            yield None, "store", [name]


def uses_of(steps):
    uses = {}
    for at, (_, _, reads) in enumerate(steps):
        for read in reads:
            if isinstance(read, str):
                uses.setdefault(read, []).append(at)
    return uses


def strides_of(region):
    buffers = {**region["inputs"], **region["outputs"]}
    return {name: list(torch.empty_strided(*b).expand(region["space"]).stride()) for name, b in buffers.items()}


def lower_region(region):
    steps = list(steps_of(region))
    uses, strides = uses_of(steps), strides_of(region)
    register_of, slot_of, rows = {}, {}, []

    def coming(name, at):
        return min((use for use in uses.get(name, []) if use >= at), default=10**6)

    def place(name, at, busy):
        taken = set(register_of.values())
        for number in range(region["registers"]):
            if f"r{number}" not in taken:
                register_of[name] = f"r{number}"
                return
        victim = sorted((n for n in register_of if n not in busy), key=lambda n: coming(n, at))[-1]
        register_of[name] = register_of.pop(victim)
        if victim not in region["inputs"] and victim not in slot_of and coming(victim, at) < 10**6:
            slot_of[victim] = len(slot_of)
            rows.append(["spill", slot_of[victim], register_of[name]])

    for at, (name, op, reads) in enumerate(steps):
        for read in dict.fromkeys(r for r in reads if isinstance(r, str)):
            if read not in register_of:
                place(read, at, reads)
                if read in slot_of:
                    rows.append(["reload", register_of[read], slot_of[read]])
                else:
                    rows.append(["load", register_of[read], read, strides[read]])
        operands = [register_of.get(read, read) for read in reads]
        for old in list(register_of):
            if coming(old, at + 1) == 10**6:
                del register_of[old]
        if op == "store":
            rows.append(["store", reads[0], strides[reads[0]], operands[0]])
        else:
            place(name, at + 1, ())
            rows.append([op, register_of[name], *operands])
    return rows


# %% a class with a table of next uses
class Allocator:
    def __init__(self, region):
        self.region, self.rows = region, []
        self.registers = [None] * region["registers"]
        self.in_memory = {}
        self.now = 0

    def distance(self, value):
        for at in range(self.now, len(self.region["nodes"])):
            if value in self.region["nodes"][at][2]:
                return at
        return 1000

    def choose(self, keep):
        best, worst = None, -1
        for number, value in enumerate(self.registers):
            if value is None:
                return number
            if value not in keep and self.distance(value) > worst:
                best, worst = number, self.distance(value)
        value = self.registers[best]
        if worst < 1000 and value not in self.in_memory and value not in self.region["inputs"]:
            self.in_memory[value] = len(self.in_memory)
            self.rows.append(["spill", self.in_memory[value], f"r{best}"])
        return best

    def fetch(self, value, keep):
        if not isinstance(value, str):
            return value
        if value not in self.registers:
            number = self.choose(keep)
            self.registers[number] = value
            if value in self.in_memory:
                self.rows.append(["reload", f"r{number}", self.in_memory[value]])
            else:
                self.rows.append(["load", f"r{number}", value, self.strides(*self.region["inputs"][value])])
        return f"r{self.registers.index(value)}"

    def strides(self, shape, strides):
        lacking = len(self.region["space"]) - len(shape)
        found = []
        for dim in range(len(self.region["space"])):
            repeated = dim < lacking or shape[dim - lacking] == 1
            found.append(0 if repeated else strides[dim - lacking])
        return found

    def run(self):
        for name, op, reads in self.region["nodes"]:
            given = [self.fetch(read, reads) for read in reads]
            self.now += 1
            self.registers = [None if v is None or self.distance(v) == 1000 else v for v in self.registers]
            number = self.choose([])
            self.registers[number] = name
            into = f"r{number}"
            if op == "relu":
                self.rows.append(["max", into, given[0], 0.0])
            elif op == "mean.row":
                self.rows.append(["sum.row", into, given[0]])
                self.rows.append(["div", into, into, self.region["space"][-1]])
            else:
                self.rows.append([op, into, *given])
            if name in self.region["outputs"]:
                self.rows.append(["store", name, self.strides(*self.region["outputs"][name]), into])
        return self.rows


def lower_region(region):
    return Allocator(region).run()


# %% uses as lists that shrink
def walk(space, shape, strides):
    padded = [(1, 0)] * (len(space) - len(shape)) + list(zip(shape, strides, strict=True))
    return [0 if size == 1 else stride for size, stride in padded]


def uses_of(nodes):
    left = {}
    for number, node in enumerate(nodes):
        for read in {r for r in node[2] if isinstance(r, str)}:
            left.setdefault(read, []).append(number)
    return left


def spelled(op, target, args, columns):
    if op == "relu":
        return [["max", target, args[0], 0]]
    if op == "mean.row":
        return [["sum.row", target, args[0]], ["mul", target, target, 1 / columns]]
    return [[op, target, *args]]


def lower_region(region):
    nodes, inputs, outputs, space = region["nodes"], region["inputs"], region["outputs"], region["space"]
    left = uses_of(nodes)
    where, slots, out = {}, {}, []
    pool = {f"r{i}" for i in range(region["registers"])}

    def grab(locked):
        if not pool:
            far = max(set(where) - set(locked), key=lambda v: left[v][0] if left.get(v) else 999)
            if left.get(far) and far not in inputs and far not in slots:
                slots[far] = len(slots)
                out.append(["spill", slots[far], where[far]])
            pool.add(where.pop(far))
        return pool.pop()

    for name, op, reads in nodes:
        names = [r for r in reads if isinstance(r, str)]
        for read in names:
            if read in where:
                continue
            where[read] = grab(names)
            if read in slots:
                out.append(["reload", where[read], slots[read]])
            else:
                out.append(["load", where[read], read, walk(space, *inputs[read])])
        args = [where[r] if isinstance(r, str) else r for r in reads]
        for read in set(names):
            left[read].pop(0)
            if not left[read]:
                pool.add(where.pop(read))
        target = grab([])
        out += spelled(op, target, args, space[-1])
        if name in outputs:
            out.append(["store", name, walk(space, *outputs[name]), target])
        if left.get(name):
            where[name] = target
        else:
            pool.add(target)
    return out


# %% what memory holds leaves at half the price
def steps(space, shape, strides):
    return [0] * (len(space) - len(shape)) + [0 if n == 1 else s for n, s in zip(shape, strides, strict=True)]


def lower_region(region):
    nodes, inputs, outputs, space = region["nodes"], region["inputs"], region["outputs"], region["space"]
    rows, home, slots = [], {}, {}
    registers = [f"r{i}" for i in range(region["registers"])]

    def wait(value, now):
        return next((at - now + 1 for at in range(now, len(nodes)) if value in nodes[at][2]), None)

    def give(value, now, keep):
        free = [r for r in registers if r not in home.values()]
        if not free:
            waits = {v: wait(v, now) for v in home if v not in keep}
            there = {v: v in inputs or v in slots for v in waits}
            lost = max(waits, key=lambda v: 10**6 if waits[v] is None else waits[v] * (2 if there[v] else 1))
            if waits[lost] is not None and not there[lost]:
                slots[lost] = len(slots)
                rows.append(["spill", slots[lost], home[lost]])
            free = [home.pop(lost)]
        home[value] = free[0]
        return free[0]

    for now, (name, op, reads) in enumerate(nodes):
        for read in reads:
            if isinstance(read, str) and read not in home:
                register = give(read, now, reads)
                again = ["reload", register, slots.get(read)]
                rows.append(again if read in slots else ["load", register, read, steps(space, *inputs[read])])
        values = [home.get(read, read) for read in reads]
        home_after = {v: r for v, r in home.items() if wait(v, now + 1)}
        home.clear()
        home.update(home_after)
        into = give(name, now + 1, ())
        if op == "mean.row":
            rows += [["sum.row", into, values[0]], ["mul", into, into, 1.0 / space[-1]]]
        else:
            rows.append(["max", into, values[0], 0] if op == "relu" else [op, into, *values])
        if name in outputs:
            rows.append(["store", name, steps(space, *outputs[name]), into])
    return rows
