def refusal(question):
    target = question["target"]
    match question["node"]:
        case {"op": op} if op not in target["operators"]:
            return "operator"
        case {"result": None}:
            return "result"
        case {"op": op, "inputs": inputs, "result": result, "arguments": arguments}:
            dtypes, only = target["operators"][op]["dtypes"], target["operators"][op]["only"]
    read = []
    for value in inputs:
        match value:
            case {"dtype": dtype, "rank": rank}:
                read.append((dtype, rank))
    every = read + [(result["dtype"], result["rank"])]
    if not all(dtype in dtypes for dtype, _ in every):
        return "dtype"
    if len(set(dtype for dtype, _ in read)) == 2:
        return "mixed"
    if sorted(rank for _, rank in every)[-1] > target["rank"]:
        return "rank"
    if [name for name in only if name in arguments and arguments[name] is not only[name] and arguments[name] != only[name]]:
        return "argument"
    return ""
