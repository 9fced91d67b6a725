def read_code(text: str) -> list[dict]:
    """Say what each block of a kernel reads, computes and writes; about 15 lines with re.findall."""
    kinds = {"max_propagate_nan": "max", "min_propagate_nan": "min", "+": "sum", "*": "product"}
    read, loops = r"= (\w+_ptr\d+)\[", []
    for block in re.findall(r"^    {\n(.*?)^    }$", text, re.MULTILINE | re.DOTALL):
        updates = re.findall(r"^ *tmp_acc\d+ = (.*);$", block, re.MULTILINE)
        masked = "".join(re.findall(r"\[&\]\n(.*?)^ *;$", block, re.MULTILINE | re.DOTALL))
        loops.append(
            {
                "sizes": [int(size) for size in re.findall(r"for.*<static_cast<int64_t>\((\d+)L", block)],
                "reads": sorted(set(re.findall(read, block))),
                "writes": sorted(set(re.findall(r"^ *(\w+_ptr\d+)\[", block, re.MULTILINE))),
                "functions": re.findall(r"std::(\w+)\(", block),
                "reductions": [next(kinds[k] for k in kinds if k in update) for update in updates],
                "masked": sorted(set(re.findall(read, masked))),
            }
        )
    return loops
