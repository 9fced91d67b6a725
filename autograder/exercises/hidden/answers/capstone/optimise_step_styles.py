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


# %% from the linear layer forwards, with keywords
def only_user(node):
    users = list(node.users)
    return users[0] if len(users) == 1 else None


def optimise(gm):
    for node in list(gm.graph.nodes):
        owner = gm.get_submodule(node.target) if node.op == "call_module" else None
        if not isinstance(owner, nn.Linear):
            continue
        drop = only_user(node)
        if drop is None or drop.op != "call_module" or not isinstance(gm.get_submodule(drop.target), nn.Dropout):
            continue
        total = only_user(drop)
        if total is None or total.target is not operator.add:
            continue
        norm = only_user(total)
        if norm is None or norm.op != "call_module" or not isinstance(gm.get_submodule(norm.target), nn.LayerNorm):
            continue
        residual = total.args[0] if total.args[1] is drop else total.args[1]
        with gm.graph.inserting_before(norm):
            matrix = gm.graph.get_attr(node.target + ".weight")
            product = gm.graph.call_function(F.linear, args=(node.args[0],), kwargs={"weight": matrix})
            fused = gm.graph.call_function(
                torch.ops.course_lib.bias_dropout_residual_layer_norm.default,
                kwargs={
                    "x": product,
                    "bias": gm.graph.get_attr(node.target + ".bias"),
                    "residual": residual,
                    "weight": gm.graph.get_attr(norm.target + ".weight"),
                    "layer_norm_bias": gm.graph.get_attr(norm.target + ".bias"),
                    "p": gm.get_submodule(drop.target).p,
                    "training": drop.meta.get("training", True),
                    "eps": gm.get_submodule(norm.target).eps,
                },
            )
        norm.replace_all_uses_with(fused)
        gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    return gm


# %% a Transformer of torch.fx
class Fusing(fx.Transformer):
    def __init__(self, gm):
        super().__init__(gm)
        self.gm, self.garbage_collect_values = gm, False

    def run_node(self, n):
        end = self.end_of_block(n)
        if end is None:
            return super().run_node(n)
        linear, drop, residual = end
        x, residual = self.map_nodes_to_values((linear.args[0], residual), n)
        get = lambda path: self.get_attr(path, (), {})
        terms = F.linear(x, get(f"{linear.target}.weight")), get(f"{linear.target}.bias"), residual
        owners = self.gm.get_submodule(drop.target), self.gm.get_submodule(n.target)
        rest = get(f"{n.target}.weight"), get(f"{n.target}.bias"), owners[0].p, True, owners[1].eps
        fused = torch.ops.course_lib.bias_dropout_residual_layer_norm.default
        return self.call_function(fused, (*terms, *rest), {})

    def is_a(self, node, kind):
        return node.op == "call_module" and isinstance(self.gm.get_submodule(node.target), kind)

    def end_of_block(self, n):
        if not self.is_a(n, nn.LayerNorm) or n.args[0].target != operator.add or len(n.args[0].users) > 1:
            return None
        for drop, residual in (n.args[0].args, reversed(n.args[0].args)):
            if self.is_a(drop, nn.Dropout) and self.is_a(drop.args[0], nn.Linear):
                return drop.args[0], drop, residual
        return None


def optimise(gm):
    out = Fusing(gm).transform()
    out.graph.eliminate_dead_code()
    out.recompile()
    return out


# %% until nothing changes, by the names of modules
def find(gm):
    kinds = {name: type(module).__name__ for name, module in gm.named_modules()}
    for norm in gm.graph.nodes:
        if kinds.get(norm.target) == "LayerNorm" and norm.args[0].target == operator.add:
            one, other = norm.args[0].args
            for drop, residual in ((one, other), (other, one)):
                if kinds.get(drop.target) == "Dropout" and kinds.get(drop.args[0].target) == "Linear":
                    return drop.args[0], drop, residual, norm
    return None


def optimise(gm):
    while found := find(gm):
        linear, drop, residual, norm = found
        graph = gm.graph
        with graph.inserting_after(norm):
            names = [f"{linear.target}.weight", f"{linear.target}.bias", f"{norm.target}.weight", f"{norm.target}.bias"]
        with graph.inserting_before(norm):
            w, b, gamma, beta = [graph.get_attr(name) for name in names]
            product = graph.call_function(torch._C._nn.linear, (linear.args[0], w))
            p, eps = gm.get_submodule(drop.target).p, gm.get_submodule(norm.target).eps
            new = graph.create_node(
                "call_function",
                torch.ops.course_lib.bias_dropout_residual_layer_norm.default,
                (product, b, residual, gamma, beta, p, gm.training, eps),
            )
        norm.replace_all_uses_with(new)
        for dead in (norm, norm.args[0], drop, linear):
            graph.erase_node(dead)
    gm.recompile()
    return gm


# %% the library's function, called with the residual's place known
from course_lib.kernels import bias_dropout_residual_layer_norm


def optimise(gm):
    modules = dict(gm.named_modules())
    for total in gm.graph.find_nodes(op="call_function", target=operator.add):
        terms = [t for t in total.args if isinstance(t, fx.Node) and t.op == "call_module"]
        drops = [t for t in terms if type(modules[t.target]) is nn.Dropout]
        norms = [u for u in total.users if u.op == "call_module" and type(modules[u.target]) is nn.LayerNorm]
        if len(drops) != 1 or len(norms) != 1 or len(total.users) != 1:
            continue
        (drop,), (norm,) = drops, norms
        linear = drop.args[0]
        if linear.op != "call_module" or type(modules[linear.target]) is not nn.Linear:
            continue
        (residual,) = [t for t in total.args if t is not drop]
        with gm.graph.inserting_before(norm):
            attr = gm.graph.get_attr
            product = gm.graph.call_function(torch.matmul, (linear.args[0], transposed(gm, linear)))
            fused = gm.graph.call_function(
                bias_dropout_residual_layer_norm,
                (product, attr(f"{linear.target}.bias"), residual, attr(f"{norm.target}.weight")),
                {
                    "layer_norm_bias": attr(f"{norm.target}.bias"),
                    "p": modules[drop.target].p,
                    "training": True,
                    "eps": modules[norm.target].eps,
                },
            )
            norm.replace_all_uses_with(fused)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


def transposed(gm, linear):
    return gm.graph.call_method("t", (gm.graph.get_attr(f"{linear.target}.weight"),))


# %% a table of ends, and GELU with its bias
def optimise(gm):
    owners = dict(gm.named_modules())
    kind = lambda n: type(owners[n.target]) if isinstance(n, fx.Node) and n.op == "call_module" else None
    param = lambda n, name: gm.graph.get_attr(f"{n.target}.{name}")
    for node in list(gm.graph.nodes):
        with gm.graph.inserting_before(node):
            if node.target in (F.gelu, torch._C._nn.gelu) and kind(node.args[0]) is nn.Linear and not node.kwargs:
                linear = node.args[0]
                product = gm.graph.call_function(F.linear, (linear.args[0], param(linear, "weight")))
                new = gm.graph.call_function(torch.ops.course_lib.bias_gelu.default, (product, param(linear, "bias")))
            elif kind(node) is nn.LayerNorm and node.args[0].target is operator.add:
                ends = [t for t in node.args[0].args if kind(t) is nn.Dropout and kind(t.args[0]) is nn.Linear]
                if not ends:
                    continue
                drop, linear = ends[0], ends[0].args[0]
                left, right = node.args[0].args
                product = gm.graph.call_function(F.linear, (linear.args[0], param(linear, "weight")))
                terms = product, param(linear, "bias"), right if left is drop else left
                norm = param(node, "weight"), param(node, "bias")
                rest = owners[drop.target].p, owners[drop.target].training, owners[node.target].eps
                new = gm.graph.call_function(
                    torch.ops.course_lib.bias_dropout_residual_layer_norm.default, (*terms, *norm, *rest)
                )
            else:
                continue
        node.replace_all_uses_with(new)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm


# %% a schedule of a module around the graph
from course_lib.schedule import create_schedule


class Model(nn.Module):
    def __init__(self, gm):
        super().__init__()
        self.calls = gm.graph
        for name, part in gm.named_children():
            self.add_module(name, part)

    def forward(self, hidden, mask):
        return fx.Interpreter(self, graph=self.calls).run(hidden, mask)


def block_end(x, bias, residual, shape, weight, shift, p, training, eps):
    return F.layer_norm(F.dropout(x + bias, p, training) + residual, shape, weight, shift, eps)


def one_call(x, bias, residual, shape, weight, shift, p, training, eps):
    return torch.ops.course_lib.bias_dropout_residual_layer_norm(x, bias, residual, weight, shift, p, training, eps)


def optimise(gm):
    schedule = create_schedule(Model(gm))
    for drop in gm.graph.nodes:
        if drop.op == "call_module" and isinstance(gm.get_submodule(drop.target), nn.Dropout):
            before = drop.args[0]
            if before.op == "call_module" and isinstance(gm.get_submodule(before.target), nn.Linear):
                schedule[before.target].decompose()
    schedule.trace()
    schedule.fuse(schedule.find(block_end), compiler=one_call)
    built = schedule.build()
    return fx.GraphModule(built, fx.Tracer().trace(built))


# %% a schedule of the graph, decomposed and traced again
def optimise(gm):
    import course_lib.kernels
    from course_lib.schedule import create_schedule

    def ending(x, bias, residual, p, training, shape, weight, shift, eps):
        return F.layer_norm(F.dropout(x + bias, p, training) + residual, shape, weight, shift, eps)

    def one_call(x, bias, residual, p, training, shape, weight, shift, eps):
        return course_lib.kernels.bias_dropout_residual_layer_norm(x, bias, residual, weight, shift, p, training, eps)

    schedule = create_schedule(gm)
    modules = dict(gm.named_modules())
    for node in gm.graph.find_nodes(op="call_module"):
        if type(modules[node.target]) is nn.Linear:
            readers = [modules.get(reader.target) for reader in node.users]
            if any(isinstance(reader, nn.Dropout) for reader in readers):
                schedule[node.target].decompose()
    schedule.trace()
    matches = schedule.find(ending)
    if len(matches):
        schedule.fuse(matches, compiler=one_call)
    return schedule.build()


# %% a schedule of the graph, with the product in the pattern
def optimise(gm):
    import course_lib.kernels
    from course_lib.schedule import create_schedule

    def ending(x, matrix, bias, residual, p, training, shape, weight, shift, eps):
        branch = F.dropout(F.linear(x, matrix, bias), p, training)
        return F.layer_norm(branch + residual, shape, weight, shift, eps)

    def one_call(x, matrix, bias, residual, p, training, shape, weight, shift, eps):
        product = F.linear(x, matrix)
        return course_lib.kernels.bias_dropout_residual_layer_norm(
            product, bias, residual, weight, shift, p, training, eps
        )

    schedule = create_schedule(gm)
    matches = schedule.find(ending)
    if len(matches):
        schedule.fuse(matches, compiler=one_call)
    return schedule.build()
