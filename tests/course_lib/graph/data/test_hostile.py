"""Data that `to_data` would never write is refused by `from_data` in one sentence that names the place."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import fx, nn

import course_lib.kernels  # noqa: F401  # registers the course's operators
from course_lib.errors import GraphError
from course_lib.graph import from_data, to_data

Data = dict[str, Any]
Change = Callable[[Data, dict[str, torch.Tensor]], object]


class Program(nn.Module):
    """Nodes: x, linear, act, bias, add, getattr_1, getitem, sum_1, mul, output."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.act = nn.SiLU()
        self.bias = nn.Parameter(torch.zeros(4))

    def forward(self, x: torch.Tensor) -> object:
        h = self.act(self.linear(x)) + self.bias
        return h.sum(dim=0) * h.shape[0]


@pytest.fixture(scope="module")
def honest() -> tuple[Data, dict[str, torch.Tensor]]:
    data, tensors = to_data(fx.symbolic_trace(Program()))
    return json.loads(json.dumps(data)), tensors


def node(data: Data, name: str) -> Data:
    found: list[Data] = [node for node in data["nodes"] if node["name"] == name]
    return found[0]


def change(name: str, **fields: object) -> Change:
    return lambda data, tensors: node(data, name).update(fields)


def argument(value: object) -> Change:
    """Give the method `sum` one more argument."""
    return lambda data, tensors: node(data, "sum_1")["args"].append(value)


def insert(position: int, **fields: object) -> Change:
    new = {
        "name": "new",
        "op": "call_function",
        "target": "torch.relu",
        "args": [{"node": "x"}],
        "kwargs": {},
        **fields,
    }
    return lambda data, tensors: data["nodes"].insert(position, new)


def nested(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return value


def whole(**fields: object) -> Change:
    return lambda data, tensors: data.update(fields)


def module(**fields: object) -> Change:
    return lambda data, tensors: data["modules"]["linear"].update(fields)


def arguments(**fields: object) -> Change:
    return lambda data, tensors: data["modules"]["linear"]["arguments"].update(fields)


def tensor(path: str, value: object) -> Change:
    return lambda data, tensors: tensors.update({path: value})  # type: ignore[dict-item]


def entry(path: str, value: object) -> Change:
    return lambda data, tensors: data["tensors"].update({path: value})


def input_named(target: str, name: str = "x2") -> Change:
    return insert(1, op="placeholder", name=name, target=target, args=[])


def rename(old: str, new: object) -> Change:
    def apply(data: Data, tensors: dict[str, torch.Tensor]) -> None:
        text = json.dumps(data["nodes"]).replace(json.dumps({"node": old}), json.dumps({"node": new}))
        data["nodes"] = json.loads(text)
        node(data, old)["name"] = new

    return apply


def call(target: object, *args: object, **kwargs: object) -> Change:
    return change("getitem", op="call_function", target=target, args=list(args), kwargs=kwargs)


X = {"node": "x"}
HOSTILE: dict[str, tuple[Change, str]] = {
    # targets
    "os_system": (call("os.system", "true"), "Node 'getitem': 'os.system' is not among"),
    "eval": (call("builtins.eval", "1"), "Node 'getitem'"),
    "torch_load": (call("torch.load", "/etc/passwd"), "Node 'getitem'"),
    "torch_dunder": (call("torch.__builtins__.eval", "1"), "Node 'getitem'"),
    "a_walk_from_an_allowed_module": (call("torch.nn.functional.torch.load", "x"), "Node 'getitem'"),
    "an_operator_that_calls": (call("operator.methodcaller", "save"), "Node 'getitem'"),
    "an_overload_outside_the_table": (call("torch.ops.aten.from_file.default", "x"), "Node 'getitem'"),
    "uninitialised_memory": (call("torch.empty", 1000), "Node 'getitem'"),
    "a_target_that_is_a_list": (call(["torch.relu"], X), "Node 'getitem': a list is not among"),
    "a_target_that_is_none": (call(None, X), "Node 'getitem'"),
    "an_operator_of_the_course_that_does_not_exist": (call("torch.ops.course_lib.bias_evil", X), "Node 'getitem'"),
    "too_many_operands": (call("operator.add", X, X, X), "takes 2 arguments"),
    "keywords_of_an_operator": (call("operator.add", X, X, alpha=2), "takes 2 arguments"),
    "an_assignment_to_a_number": (call("operator.iadd", 1, X), "must be a node"),
    "getattr_of_a_method": (call("builtins.getattr", X, "data_ptr"), "getattr may read"),
    "getattr_of_a_dunder": (call("builtins.getattr", X, "__class__"), "getattr may read"),
    "getattr_with_a_computed_name": (call("builtins.getattr", X, X), "name of an attribute"),
    "getattr_with_a_default": (call("builtins.getattr", X, "shape", 1), "name of an attribute"),
    "getattr_on_a_text": (call("builtins.getattr", "x", "shape"), "name of an attribute"),
    "a_method_outside_the_table": (
        change("sum_1", target="register_hook"),
        "Node 'sum_1': 'register_hook' is no method",
    ),
    "a_method_with_code": (change("sum_1", target="sum(); import os; x.sum"), "is no method"),
    "a_dunder_method": (change("sum_1", target="__reduce__"), "is no method"),
    "a_method_of_a_text": (change("sum_1", args=["text"]), "first argument of a method"),
    "a_method_of_nothing": (change("sum_1", args=[]), "first argument of a method"),
    # names
    "a_name_with_code": (rename("add", "a=1;import os"), "is no name"),
    "a_name_with_a_newline": (rename("add", "a\n"), "is no name"),
    "a_name_that_is_a_keyword": (rename("add", "import"), "reserved"),
    "a_name_that_is_self": (rename("add", "self"), "reserved"),
    "a_dunder_name": (rename("add", "__builtins__"), "reserved"),
    "a_name_that_hides_torch": (rename("add", "torch"), "hides a name"),
    "a_name_that_hides_a_builtin": (rename("add", "getattr"), "hides a name"),
    "a_name_outside_ascii": (rename("add", "é"), "is no name"),
    "a_very_long_name": (rename("add", "a" * 10_000), "is no name"),
    "a_name_that_is_a_number": (rename("add", 7), "is no name"),
    "two_nodes_of_one_name": (insert(5, name="add"), "Node 'add': another node"),
    "an_input_with_code": (input_named("y=print(1)"), "is no name"),
    "an_input_with_a_star": (input_named("*y"), "is no name"),
    "an_input_called_self": (input_named("self"), "reserved"),
    "an_input_that_hides_torch": (input_named("torch"), "hides a name"),
    "an_input_twice": (input_named("x"), "another input"),
    "an_input_that_hides_a_node": (input_named("add"), "both called 'add'"),
    "an_input_after_other_nodes": (
        insert(3, op="placeholder", name="late", target="late", args=[]),
        "Node 'late': inputs come before",
    ),
    "an_input_with_a_tensor_as_default": (change("x", args=[[1]]), "at most one default"),
    "an_input_without_default_after_one_with": (
        lambda data, tensors: (input_named("y")(data, tensors), node(data, "x").update(args=[1])),
        "cannot make code",
    ),
    "a_keyword_with_code": (change("sum_1", kwargs={"dim=0) or print(1": 0}), "Node 'sum_1'"),
    "a_keyword_that_is_a_keyword": (change("sum_1", kwargs={"lambda": 0}), "reserved"),
    # arguments
    "a_node_that_comes_later": (change("linear", args=[{"node": "add"}]), "Node 'linear': it uses 'add'"),
    "a_node_that_uses_itself": (change("linear", args=[{"node": "linear"}]), "Node 'linear': it uses 'linear'"),
    "a_node_that_does_not_exist": (change("linear", args=[{"node": "nothing"}]), "it uses 'nothing'"),
    "a_node_whose_name_is_a_list": (change("linear", args=[{"node": ["x"]}]), "it uses a list"),
    "two_tags": (argument({"node": "x", "tuple": []}), "one key"),
    "no_tag": (argument({}), "one key"),
    "an_unknown_tag": (argument({"code": "1"}), "one key"),
    "a_bare_nan": (argument(float("nan")), "nan and infinities"),
    "a_bare_infinity": (argument(float("inf")), "nan and infinities"),
    "a_float_that_is_code": (argument({"float": "inf;1"}), "no special float"),
    "a_dtype_that_is_a_function": (argument({"dtype": "load"}), "is no dtype"),
    "a_dtype_that_is_a_list": (argument({"dtype": ["float32"]}), "is no dtype"),
    "a_slice_of_two": (argument({"slice": [1, 2]}), "a slice is"),
    "a_tuple_of_text": (argument({"tuple": "ab"}), "a tuple is"),
    "a_dict_of_list": (argument({"dict": [1]}), "a dict is"),
    "an_ellipsis_of_one": (argument({"ellipsis": 1}), "Ellipsis is"),
    "a_huge_integer": (argument(10**400), "64 bits"),
    "a_huge_text": (argument("a" * 20_000), "10000 characters"),
    "keywords_without_end": (
        lambda data, tensors: node(data, "sum_1")["kwargs"].update({f"a{i}": 0 for i in range(100_000)}),
        "100,001 keyword arguments; a call has at most 100",
    ),
    "a_deep_list": (argument(nested(21)), "deeper than 20"),
    "a_very_deep_list": (argument(nested(900)), "deeper than 20"),
    "a_long_list": (argument([0] * 200_001), "more than 200000 values"),
    "args_that_are_a_text": (change("linear", args="x"), "args are not a list"),
    "kwargs_that_are_a_list": (change("linear", kwargs=[]), "kwargs are not an object"),
    # shape of the graph
    "not_an_object": (lambda data, tensors: data.clear(), "keys"),
    "an_unknown_key": (whole(code="import os"), "keys"),
    "an_unknown_key_of_a_node": (change("add", type_expr="int"), "Node number 4: a node is written"),
    "a_missing_key_of_a_node": (lambda data, tensors: node(data, "add").pop("kwargs"), "Node number 4"),
    "a_node_that_is_a_text": (lambda data, tensors: data["nodes"].insert(0, "x"), "Node number 0"),
    "nodes_that_are_an_object": (whole(nodes={}), "no list of"),
    "no_nodes": (whole(nodes=[]), "no list of"),
    "too_many_nodes": (lambda data, tensors: data.update(nodes=data["nodes"] * 2000), "no list of"),
    "an_unknown_op": (change("add", op="exec"), "Node 'add': its op is 'exec'"),
    "an_op_that_is_a_list": (change("add", op=["output"]), "its op is a list"),
    "no_output": (lambda data, tensors: data["nodes"].pop(), "one output"),
    "two_outputs": (insert(4, op="output", target="output"), "one output"),
    "an_output_of_two": (lambda data, tensors: data["nodes"][-1]["args"].append(1), "does not take these"),
    "an_output_with_another_target": (lambda data, tensors: data["nodes"][-1].update(target="return"), "'output'"),
    "a_training_flag_that_is_a_text": (whole(training="yes"), "training flag"),
    # modules
    "a_module_that_is_not_there": (change("act", target="other"), "no module at 'other'"),
    "a_module_that_no_node_calls": (
        lambda data, tensors: data["modules"].update(more={"class": "torch.nn.SiLU", "arguments": {}}),
        "no node calls it",
    ),
    "a_class_outside_the_table": (module(**{"class": "torch.nn.Bilinear"}), "Module 'linear'"),
    "a_class_elsewhere": (module(**{"class": "os.Linear"}), "is no module"),
    "a_class_without_its_package": (module(**{"class": "Linear"}), "is no module"),
    "a_class_that_is_a_list": (module(**{"class": []}), "is no module"),
    "an_unknown_key_of_a_module": (module(hooks=[]), "a module is written"),
    "a_module_that_is_a_list": (lambda data, tensors: data["modules"].update(linear=[]), "a module is written"),
    "an_unknown_argument": (arguments(device="cuda"), "'device' is no argument"),
    "an_argument_of_another_type": (arguments(in_features="3"), "in_features is not a positive"),
    "an_argument_that_is_true_for_one": (arguments(in_features=True), "in_features is not a positive"),
    "a_negative_size": (arguments(in_features=-3), "in_features is not a positive"),
    "an_argument_that_is_a_node": (arguments(in_features={"node": "x"}), "no earlier node"),
    "a_gigantic_module": (arguments(in_features=2**31 - 1, out_features=2**31 - 1), "refused its arguments"),
    "a_missing_argument": (
        lambda data, tensors: data["modules"]["linear"].update(arguments={}),
        "refused its arguments",
    ),
    "a_training_flag_of_a_module_that_is_one": (module(training=1), "training flag"),
    "modules_that_are_a_list": (whole(modules=[]), "modules are no object"),
    "a_module_in_a_module": (
        lambda data, tensors: (
            data["modules"].update({"linear.inner": {"class": "torch.nn.SiLU", "arguments": {}}}),
            node(data, "act").update(target="linear.inner"),
        ),
        "leads through another module",
    ),
    # paths and tensors
    "a_path_with_a_dunder": (change("bias", target="__class__"), "no tensor at '__class__'"),
    "an_entry_with_a_dunder": (entry("__class__", {"parameter": True}), "reserved"),
    "a_path_through_a_dunder": (entry("act.__class__.weight", {"parameter": True}), "reserved"),
    "a_path_with_an_empty_part": (entry("act..weight", {"parameter": True}), "is no name"),
    "a_path_that_hides_forward": (entry("forward", {"parameter": True}), "every module already has"),
    "a_path_that_hides_the_modules": (entry("_modules", {"parameter": True}), "every module already has"),
    "a_path_that_hides_the_graph": (entry("graph", {"parameter": True}), "every module already has"),
    "a_tensor_that_no_node_reads": (
        lambda data, tensors: (entry("more", {"parameter": True})(data, tensors), tensors.update(more=torch.ones(1))),
        "no node reads it",
    ),
    "a_tensor_without_an_entry": (tensor("more", torch.ones(1)), "their paths differ"),
    "an_entry_without_a_tensor": (lambda data, tensors: tensors.pop("bias"), "Tensor 'bias'"),
    "a_module_without_its_weight": (
        lambda data, tensors: (data["tensors"].pop("linear.weight"), tensors.pop("linear.weight")),
        "its module needs it",
    ),
    "a_weight_of_another_shape": (tensor("linear.weight", torch.ones(4, 4)), "expects a parameter of shape"),
    "a_weight_that_is_a_buffer": (entry("linear.weight", {"parameter": False}), "expects a parameter"),
    "a_weight_that_broadcasts": (tensor("linear.weight", torch.ones(1)), "expects a parameter of shape"),
    "a_tensor_that_a_module_does_not_have": (
        lambda data, tensors: (
            entry("linear.more", {"parameter": True})(data, tensors),
            tensors.update({"linear.more": torch.ones(1)}),
        ),
        "leads through another module",
    ),
    "a_parameter_of_integers": (tensor("bias", torch.ones(4, dtype=torch.int64)), "cannot have a gradient"),
    "a_sparse_tensor": (tensor("bias", torch.ones(4).to_sparse()), "sparse"),
    "a_list_for_a_tensor": (tensor("bias", [0.0] * 4), "no plain tensor"),
    "an_entry_that_is_true": (entry("bias", True), "a tensor is written"),
    "an_entry_with_an_unknown_key": (entry("bias", {"parameter": True, "grad_fn": 1}), "a tensor is written"),
    "an_entry_whose_flag_is_a_text": (entry("bias", {"parameter": "yes"}), "are true or false"),
    "tied_to_nothing": (
        lambda data, tensors: (entry("bias", {"parameter": True, "same_as": "x"})(data, tensors), tensors.pop("bias")),
        "cannot be the same",
    ),
    "tied_to_itself": (
        lambda data, tensors: (
            entry("bias", {"parameter": True, "same_as": "bias"})(data, tensors),
            tensors.pop("bias"),
        ),
        "cannot be the same",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_data_is_refused_with_one_sentence(case: str, honest: tuple[Data, dict[str, torch.Tensor]]) -> None:
    apply, sentence = HOSTILE[case]
    data, tensors = copy.deepcopy(honest[0]), dict(honest[1])
    apply(data, tensors)
    with pytest.raises(GraphError) as caught:
        from_data(data, tensors)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_honest_graph_that_all_these_were_made_from_is_accepted(
    honest: tuple[Data, dict[str, torch.Tensor]],
) -> None:
    from_data(*honest)


JUNK: list[object] = [None, True, -1, 2**70, 0.5, "x", "__class__", [], {}, {"node": "x"}, {"tuple": [1]}, nested(30)]


def _places(value: object) -> list[tuple[Any, Any]]:
    """Return every (container, key) below a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in items for place in [(value, key), *_places(part)]]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # Python's remark on code such as None[0], which is never run
def test_junk_anywhere_is_refused_or_harmless_and_never_another_error(
    honest: tuple[Data, dict[str, torch.Tensor]],
) -> None:
    refused = 0
    for number in range(len(_places(honest[0]))):
        for junk in JUNK:
            data = copy.deepcopy(honest[0])
            container, key = _places(data)[number]
            container[key] = junk
            try:
                from_data(data, dict(honest[1]))
            except GraphError:
                refused += 1
    assert refused > 300


@pytest.mark.parametrize("junk", [None, 7, "text", [], [1], True, {"nodes": 1}])
def test_anything_that_is_no_graph_is_refused(junk: Any) -> None:
    with pytest.raises(GraphError):
        from_data(junk, {})
