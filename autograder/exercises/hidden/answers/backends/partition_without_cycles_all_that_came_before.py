def visit(row):
    before = sorted({name for read in row["inputs"] for name in [read["name"], *read["state"]["before"]]})
    return {"before": before, "part": len(before) if row["supported"] else None}
