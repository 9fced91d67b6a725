def choose_escape(obstacle: dict) -> dict:
    """Choose among leaf, wrap, concrete_args and compile; a good answer has about 7 lines."""
    if obstacle["module"]:
        return {"leaf": obstacle["module"]}
    if obstacle["function"]:
        return {"wrap": obstacle["function"]}
    if obstacle["argument"] and len(obstacle["values"]) == 1:
        return {"concrete_args": {obstacle["argument"]: obstacle["values"][0]}}
    return {"compile": True}
