import re


def read_code(text):
    found = []
    for block in re.findall(r"^    \{\n(.*?)^    \}$", text, re.MULTILINE | re.DOTALL):
        every = sorted(set(re.findall(r"\w+_ptr\d+", block)))
        found.append(
            {
                "sizes": [int(n) for n in re.findall(r"<static_cast<int64_t>\((\d+)L", block)][:1],
                "reads": every,
                "writes": every,
                "functions": sorted(set(re.findall(r"std::(\w+)\(", block))),
                "reductions": [
                    "max" if "inf" in line else "sum" for line in re.findall(r"float tmp_acc\d+ = (.*)", block)
                ],
                "masked": [],
            }
        )
    return found
