def count(question: dict) -> dict:
    """Run the program under a counter; a good answer has about 25 lines, with its class."""
    program, inputs = program_from_steps(question)
    with Counter() as counter:
        program(*inputs)
    return {"bytes": counter.bytes, "flops": counter.flops}


class Counter(TorchDispatchMode):
    bytes = flops = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        reads = list({id(t): t for t in tree_leaves(args) if isinstance(t, torch.Tensor)}.values())
        writes = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        storages = {t.untyped_storage().data_ptr() for t in reads}
        if operator._schema.is_mutable or any(t.untyped_storage().data_ptr() not in storages for t in writes):
            self.bytes += sum(map(stored_bytes, reads + writes))
        if operator.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm):
            self.flops += 2 * args[-2].numel() * args[-1].shape[-1]
        return result


def stored_bytes(tensor):
    sizes = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return torch.Size(sizes).numel() * tensor.element_size()
