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
