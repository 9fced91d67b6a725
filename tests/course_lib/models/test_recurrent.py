"""Recurrent networks equal PyTorch's, and scripting keeps their loops where tracing does not."""

import pytest
import torch
from torch import nn

from course_lib.capture import capture, compare_modes
from course_lib.capture.fusion_groups import optimized_graph
from course_lib.models import LSTMCell, RecurrentNetwork
from course_lib.models.recurrent import LSTMNetwork

X, LONGER = torch.randn(5, 2, 3, dtype=torch.float64), torch.randn(7, 2, 3, dtype=torch.float64)


def test_the_recurrent_network_equals_pytorchs():
    ours, theirs = RecurrentNetwork(3, 4).double(), nn.RNN(3, 4).double()
    theirs.load_state_dict(
        {
            "weight_ih_l0": ours.cell.input.weight,
            "bias_ih_l0": ours.cell.input.bias,
            "weight_hh_l0": ours.cell.state.weight,
            "bias_hh_l0": ours.cell.state.bias,
        }
    )
    states, last = ours(X)
    expected, expected_last = theirs(X)
    torch.testing.assert_close(states, expected)
    torch.testing.assert_close(last, expected_last[0])
    begun = torch.randn(2, 4, dtype=torch.float64)
    torch.testing.assert_close(ours(X, begun)[0], theirs(X, begun[None])[0])


def test_the_lstm_equals_pytorchs_in_values_and_gradients():
    ours, theirs = LSTMNetwork(3, 4).double(), nn.LSTM(3, 4).double()
    theirs.load_state_dict({f"{name}_l0": value for name, value in ours.cell.state_dict().items()})
    states, memory = ours(X)
    expected, (_, expected_memory) = theirs(X)
    torch.testing.assert_close(states, expected)
    torch.testing.assert_close(memory, expected_memory[0])
    states.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(ours.cell.weight_hh.grad, theirs.weight_hh_l0.grad)


def test_state_dicts_of_the_cell_fit_pytorchs():
    ours, theirs = LSTMCell(3, 4), nn.LSTMCell(3, 4)
    theirs.load_state_dict(ours.state_dict())
    x, hidden, memory = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    torch.testing.assert_close(ours(x, hidden, memory), theirs(x, (hidden, memory)))


@pytest.mark.parametrize("network", [RecurrentNetwork, LSTMNetwork])
def test_a_script_keeps_the_loop_and_a_trace_freezes_it(network):
    verdicts = compare_modes(network(3, 4).double(), (X,), [(LONGER,)], modes=("script", "trace")).verdicts
    assert verdicts == {"script": "captured", "trace": "silently wrong"}
    assert "prim::Loop" in capture(network(3, 4), mode="script").ir


def test_the_network_tells_its_steps_if_asked_to_also_when_scripted(capsys):
    model = RecurrentNetwork(3, 4, announce=True)
    model(X.float()[:2])
    capture(model, mode="script")(X.float()[:2])
    assert capsys.readouterr().out.splitlines() == ["step 0", "step 1"] * 2
    RecurrentNetwork(3, 4)(X.float())
    assert capsys.readouterr().out == ""


def test_the_gates_of_the_cell_are_fused():
    cell = LSTMCell(3, 4)
    inputs = (torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4))
    with torch.no_grad():
        (group,) = optimized_graph(capture(cell, inputs, mode="script"), inputs).groups
    assert group.operators.count("aten::sigmoid") == 3
    assert group.operators.count("aten::tanh") == 2
    assert "aten::matmul" not in group.operators
