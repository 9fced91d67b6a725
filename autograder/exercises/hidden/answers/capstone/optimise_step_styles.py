# %% a pattern for PyTorch's own rewriter
from torch.fx import replace_pattern


class Flat(fx.Tracer):
    def is_leaf_module(self, module, path):
        return False


def optimise(gm):
    flat = fx.GraphModule(gm, Flat().trace(gm))
    norms = [m for m in gm.modules() if isinstance(m, nn.LayerNorm)]
    drops = [m for m in gm.modules() if isinstance(m, nn.Dropout)]
    for norm in norms:
        for residual_first in (False, True):
            pattern, replacement = block_end(norm.normalized_shape, norm.eps, drops[0].p, residual_first)
            replace_pattern(flat, pattern, replacement)
    return flat


def block_end(shape, eps, p, residual_first):
    def pattern(x, matrix, bias, residual, weight, shift):
        dropped = F.dropout(F.linear(x, matrix, bias), p, True, False)
        total = residual + dropped if residual_first else dropped + residual
        return F.layer_norm(total, shape, weight, shift, eps)

    def replacement(x, matrix, bias, residual, weight, shift):
        product = F.linear(x, matrix)
        fused = torch.ops.course_lib.bias_dropout_residual_layer_norm.default
        return fused(product, bias, residual, weight, shift, p, True, eps)

    return pattern, replacement


# %% a backend that lowers into a new graph
class Lowering:
    def __init__(self, gm):
        self.gm, self.modules = gm, dict(gm.named_modules())
        self.new, self.made = fx.Graph(), {}
        self.plan = {}
        for node in gm.graph.nodes:
            if region := self.region(node):
                self.plan[node] = region
        self.inside = {n for region in self.plan.values() for n in region[:3]}

    def kind(self, node):
        return type(self.modules[node.target]).__name__ if getattr(node, "op", "") == "call_module" else ""

    def region(self, node):
        if self.kind(node) != "LayerNorm" or len(node.args[0].users) != 1 or node.args[0].target != operator.add:
            return None
        for one, other in (node.args[0].args, node.args[0].args[::-1]):
            if self.kind(one) == "Dropout" and self.kind(one.args[0]) == "Linear":
                return one.args[0], one, node.args[0], other
        return None

    def lower(self, norm):
        linear, drop, _, residual = self.plan[norm]
        get, call = self.new.get_attr, self.new.call_function
        weight, bias = (get(f"{linear.target}.{name}") for name in ("weight", "bias"))
        product = call(torch.nn.functional.linear, (self.made[linear.args[0]], weight))
        owner = self.modules[drop.target], self.modules[norm.target]
        terms = product, bias, self.made[residual], get(f"{norm.target}.weight"), get(f"{norm.target}.bias")
        target = torch.ops.course_lib.bias_dropout_residual_layer_norm.default
        return call(target, (*terms, owner[0].p, owner[0].training, owner[1].eps))

    def run(self):
        for node in self.gm.graph.nodes:
            if node in self.plan:
                self.made[node] = self.lower(node)
            elif node not in self.inside:
                self.made[node] = self.new.node_copy(node, self.made.__getitem__)
        return fx.GraphModule(self.gm, self.new)


def optimise(gm):
    return Lowering(gm).run()
