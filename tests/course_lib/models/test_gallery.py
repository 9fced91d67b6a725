"""The gallery's programs are right by themselves, and each defeats a mode for a reason that it states."""

import inspect

import pytest
import torch
from torch import nn

from course_lib.models.gallery import GALLERY

RAISES_ON_A_PROBE = {"checks_its_input": ValueError}


@pytest.mark.parametrize("name", GALLERY)
def test_the_program_runs_eagerly_on_all_its_inputs(name):
    entry = GALLERY[name]
    program = entry.build()
    assert program(*entry.example_inputs()) is not None
    for inputs in entry.probe_inputs():
        if name in RAISES_ON_A_PROBE:
            with pytest.raises(RAISES_ON_A_PROBE[name]):
                program(*inputs)
        else:
            assert program(*inputs) is not None


@pytest.mark.parametrize("name", GALLERY)
def test_the_entry_is_documented_and_defeats_a_mode(name):
    entry = GALLERY[name]
    program = entry.build()
    assert entry.name == name
    assert entry.reason
    assert entry.refused or entry.refuses_a_probe or entry.silently_wrong
    assert entry.probe_inputs() or entry.switch_training
    if isinstance(program, nn.Module):
        assert inspect.getdoc(type(program))


@pytest.mark.parametrize("name", GALLERY)
def test_programs_and_inputs_are_fresh_each_time(name):
    entry = GALLERY[name]
    first, second = (torch.utils._pytree.tree_leaves(entry.example_inputs()) for _ in range(2))
    assert all(one is not other for one, other in zip(first, second, strict=True))
    if isinstance(entry.build(), nn.Module):
        assert entry.build() is not entry.build()


def test_no_mode_is_named_twice_for_one_program():
    for entry in GALLERY.values():
        named = entry.refused + entry.refuses_a_probe + entry.silently_wrong
        assert len(named) == len(set(named)), entry.name
