"""The simulated device shows each flaw where it is, and the noisy machine the noise it was asked for."""

import statistics

import pytest

from course_lib.errors import TimingError
from course_lib.timing import Flaw, NoisyMachine, SimulatedDevice

DEVICE = SimulatedDevice({"gelu": 500.0, "norm": 800.0})
WARM = ["draw", "launch gelu", "use", "draw", "launch norm", "use", "sync"]
SOUND = [*WARM, "draw", "sync", "clock", "launch gelu", "use", "sync", "clock"]

FLAWED = {
    "no wait at the end": (Flaw.UNFINISHED, [*SOUND[:-2], "clock"]),
    "no wait before": (Flaw.EARLIER, [*WARM, "draw", "clock", "launch gelu", "use", "sync", "clock"]),
    "no warm-up": (Flaw.COMPILED, SOUND[len(WARM) :]),
    "an input made inside": (Flaw.DRAWN, [*WARM, "clock", "draw", "launch gelu", "use", "sync", "clock"]),
    "the input of before": (
        Flaw.CACHED,
        ["launch gelu", "use", "sync", "clock", "launch gelu", "use", "sync", "clock"],
    ),
    "a result that nobody uses": (Flaw.DROPPED, [*WARM, "draw", "sync", "clock", "launch gelu", "sync", "clock"]),
}


def test_a_sound_script_measures_what_the_program_takes() -> None:
    (window,) = DEVICE.run(SOUND)
    assert window.flaws == frozenset()
    assert window.programs == ("gelu",)
    assert window.measured_us == pytest.approx(window.true_us, rel=0.05)


@pytest.mark.parametrize(("flaw", "script"), FLAWED.values(), ids=FLAWED)
def test_each_flaw_is_seen_alone_and_spoils_the_time(flaw: Flaw, script: list[str]) -> None:
    (window,) = DEVICE.run(script)
    assert window.flaws == {flaw}
    assert window.measured_us != pytest.approx(window.true_us, rel=0.25)
    assert str(flaw) in str(window)


def test_two_programs_in_one_window_and_two_windows_are_told_apart() -> None:
    both = ["draw", "sync", "clock", "launch gelu", "use", "launch norm", "use", "sync", "clock"]
    one = ["draw", "sync", "clock", "launch norm", "use", "sync", "clock"]
    first, second = DEVICE.run([*WARM, *both, *one])
    assert (first.programs, second.programs) == (("gelu", "norm"), ("norm",))
    assert first.true_us == 1300
    assert first.measured_us == pytest.approx(1300, rel=0.05)


@pytest.mark.parametrize("step", ["stop", "launch", "launch conv", ""])
def test_a_step_that_does_not_exist_is_answered_with_those_that_do(step: str) -> None:
    with pytest.raises(TimingError, match="launch gelu"):
        DEVICE.run([step])


def test_a_window_that_is_never_closed_is_none() -> None:
    assert DEVICE.run([*SOUND, "clock"]) == DEVICE.run(SOUND)


def test_noise_is_the_same_for_a_seed_and_another_for_another() -> None:
    order = ["a", "b"] * 20
    noisy = {seed: NoisyMachine({"a": 100.0, "b": 50.0}, seed=seed).run(order) for seed in (1, 2)}
    assert noisy[1] == NoisyMachine({"a": 100.0, "b": 50.0}, seed=1).run(order)
    assert noisy[1] != noisy[2]


def test_each_kind_of_noise_does_what_it_says() -> None:
    still = NoisyMachine({"a": 100.0}, jitter=0.0)
    assert still.run(["a"] * 3) == [100.0] * 3
    assert NoisyMachine({"a": 100.0}, jitter=0.0, rhythm=0.5, phase=6).run(["a"] * 6) == [100, 100, 150, 100, 100, 100]
    bursts = NoisyMachine({"a": 100.0}, jitter=0.0, bursts=0.1, seed=3).run(["a"] * 1000)
    assert 50 < bursts.count(600.0) < 150
    assert statistics.median(bursts) == 100
    assert NoisyMachine({"a": 100.0}, jitter=0.0, drift=-0.5).run(["a"] * 3) == [100.0, 75.0, 50.0]


def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TimingError, match="it knows a"):
        NoisyMachine({"a": 1.0}).run(["a", "b"])
