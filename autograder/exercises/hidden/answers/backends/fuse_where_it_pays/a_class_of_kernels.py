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
