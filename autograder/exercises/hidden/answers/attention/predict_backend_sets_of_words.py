def predict_backend(call):
    facts = set()
    if call["mask"]:
        facts.add(f"mask {len(call['mask']['shape'])}")
        facts |= {"learned"} if call["mask"]["learned"] else set()
        facts |= {"both"} if call["causal"] else set()
        facts |= {"mixed"} if call["mask"]["dtype"] not in ("bool", "float32", call["dtype"]) else set()
    facts |= {"dropout"} if call["dropout"] else set()
    facts |= {f"rank {len(call['query'])}"}
    facts |= {"turned"} if call["turned"] else set()
    facts |= {"wide"} if call["value"][-1] != call["key"][-1] else set()
    if "mixed" in facts:
        return "error"
    if facts & {"mask 3", "learned", "dropout", "rank 3", "turned", "wide"} or "flash" not in call["allowed"]:
        return "math" if "math" in call["allowed"] and "both" not in facts else "error"
    return "flash"
