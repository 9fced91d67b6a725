def partition(question):
    """What the default partitioner keeps."""
    read = {a for row in question["rows"] if row["part"] == "backward" for a in row["args"]}
    return [r["name"] for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input" and r["name"] in read]
