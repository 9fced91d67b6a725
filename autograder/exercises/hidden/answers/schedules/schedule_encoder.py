def schedule_encoder(schedule: Schedule, config: dict[str, bool]) -> Schedule:
    """Do all that config asks for, in every layer; a good answer has about 20 lines."""
    if config["attention"]:
        replace_attention(schedule)
    separated = [kind for kind, key in (("FeedForward", "gelu"), ("Projection", "block_ends")) if config[key]]
    for path, layer in list(schedule.mod.named_modules()):
        if type(layer).__name__ == "TransformerLayer":
            for name, part in list(layer.named_modules()):
                for inner, module in list(part.named_children()):
                    if isinstance(module, nn.Linear) and type(part).__name__ in separated:
                        schedule[path][f"{name}.{inner}"].decompose()
            schedule[path].trace(leaf_modules=(OneCallAttention,))
            if config["gelu"]:
                fuse_all(schedule[path], lambda x, bias: F.gelu(x + bias), course_lib.kernels.bias_gelu)
            if config["block_ends"]:
                fuse_all(schedule[path], block_end, one_call)
    return schedule


def fuse_all(part, pattern, kernel):
    matches = part.find(pattern)
    if len(matches):
        part.fuse(matches, compiler=kernel)
