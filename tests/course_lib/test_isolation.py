"""Random states are set as `torch.manual_seed` sets them, and nothing is noted for devices that are not there."""

import pytest
import torch

from course_lib.isolation import seed_everything


def test_what_is_drawn_is_what_manual_seed_gives() -> None:
    seed_everything(7)
    drawn = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(3))


@pytest.mark.parametrize("there", [True, False])
def test_accelerators_are_seeded_where_there_are_any(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    seed_everything(7)
    assert seeds == [7] * there
