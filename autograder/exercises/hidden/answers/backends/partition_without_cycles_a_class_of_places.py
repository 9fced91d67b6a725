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
