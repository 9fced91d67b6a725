"""What is kept of a measurement, on a clock that stands still unless somebody works."""

import json

import pytest
import torch

from course_lib.errors import TimingError
from course_lib.show import format_us
from course_lib.timing import time_callable
from course_lib.timing.clocks import Cache, ClockName, Reading, Timing
from course_lib.timing.measurement import Sampler, take_samples
from tests.course_lib.timing.fake_time import FakeTime


def measured(time: FakeTime, call, *, max_samples=10, min_sample_us=200.0, warmup_s=0.0, budget_s=1.0) -> Timing:
    """Return the timing of `call` on the clock of `time`."""
    clock = time.clock()
    sampler = Sampler(clock, call, min_sample_us=min_sample_us)
    take_samples(clock, sampler, max_samples=max_samples, warmup_s=warmup_s, budget_s=budget_s)
    return sampler.timing()


class EventClock:
    """Plays readings of a device whose wall clock says something else."""

    name, device = ClockName.CUDA_EVENT, "cuda:0"

    def __init__(self, reading: Reading, cache: Cache = Cache.COLD) -> None:
        self.reading, self.cache = reading, cache

    def read(self, call, calls):
        call()
        empty = Reading(1.0, 1.0)
        scaled = Reading(self.reading.time_us * calls, self.reading.wall_us * calls, self.reading.late_us)
        return scaled if call() == "work" else empty

    def now_us(self):
        return 0.0


def timing_by_events(reading: Reading, *, min_sample_us: float = 0.0) -> Timing:
    """Return the timing of a call that always reads like this."""
    clock = EventClock(reading)
    sampler = Sampler(clock, lambda: "work", min_sample_us=min_sample_us)
    take_samples(clock, sampler, max_samples=5, warmup_s=0.0, budget_s=1.0)
    return sampler.timing()


def test_the_first_call_and_the_warm_up_are_kept_apart_from_the_samples():
    time = FakeTime()
    # The first call compiles; three calls estimate; one more warms up.
    timing = measured(time, time.work(5_000_000, 900, 900, 900, 800, 500, 501, 502, 503, 504, 505))

    assert timing.first_call_us == 5_000_000
    assert timing.warmup_times_us == (800.0,)
    assert timing.times_us[:6] == (500.0, 501.0, 502.0, 503.0, 504.0, 505.0)
    assert len(timing.times_us) == 10


def test_statistics_are_those_of_the_samples():
    time = FakeTime()
    timing = measured(time, time.work(*[900] * 5, 500, 501, 502, 503, 99_000), max_samples=5)

    assert timing.times_us == (500.0, 501.0, 502.0, 503.0, 99_000.0)
    assert (timing.median_us, timing.min_us, timing.max_us, timing.spread_us) == (502.0, 500.0, 99_000.0, 2.0)
    assert timing.wall_times_us == timing.times_us
    assert (timing.clock, timing.cache, timing.device) == (ClockName.WALL, Cache.WARM, "cpu")


@pytest.mark.parametrize(("each_us", "calls"), [(500.0, 1), (200.0, 1), (150.0, 2), (3.0, 67), (0.1, 2000)])
def test_so_many_calls_make_a_sample_as_last_long_enough(each_us, calls):
    time = FakeTime()
    timing = measured(time, time.work(each_us))

    assert timing.calls_per_sample == calls
    assert timing.median_us == pytest.approx(each_us)


def test_a_few_slow_calls_at_the_beginning_do_not_make_samples_too_short():
    time = FakeTime()

    assert measured(time, time.work(9_000, 400, 400, 400, 40)).calls_per_sample == 5


def test_warming_up_lasts_as_long_as_it_was_asked_for():
    time = FakeTime()

    assert len(measured(time, time.work(1_000.0), warmup_s=0.05).warmup_times_us) == 50


def test_the_budget_ends_a_measurement_but_not_before_five_samples():
    time = FakeTime()
    assert len(measured(time, time.work(100_000.0), max_samples=100, budget_s=1.0).times_us) == 10

    time = FakeTime()
    assert len(measured(time, time.work(100_000_000.0), max_samples=100, budget_s=1.0).times_us) == 5


def test_what_the_call_raises_comes_through():
    with pytest.raises(ZeroDivisionError):
        time_callable(lambda: 1 // 0)


def test_a_real_call_is_measured_with_its_arguments():
    timing = time_callable(sum, [1.0] * 10_000, max_samples=5, warmup_s=0.0)

    assert 0 < timing.min_us <= timing.median_us <= timing.max_us
    assert timing.overhead_us < 100
    json.dumps(timing.to_json())


def test_a_note_says_when_measuring_costs_more_than_what_is_measured():
    notes = timing_by_events(Reading(10.0, 10.0)).notes

    assert any("measuring itself takes 1 µs of 10 µs" in note for note in notes)
    assert timing_by_events(Reading(100.0, 100.0)).notes == ()


@pytest.mark.parametrize(("factor", "told"), [(1.1, True), (1.02, False)])
def test_a_note_says_when_events_tell_more_than_a_caller_waits(factor, told):
    notes = timing_by_events(Reading(factor * 1000.0, 1000.0)).notes

    assert notes == (("events tell 1.1 ms a sample, which a caller sees end after 1 ms: use clock='wall'",) * told)


def test_a_note_says_when_a_program_is_launch_bound():
    notes = timing_by_events(Reading(100.0, 140.0)).notes

    assert notes == ("launch-bound: a caller waits 140 µs a call, the device works 100 µs",)
    assert timing_by_events(Reading(100.0, 120.0)).notes == ()


def test_a_note_says_when_events_miss_work_on_another_stream():
    notes = timing_by_events(Reading(100.0, 400.0, late_us=300.0)).notes

    assert len(notes) == 1
    assert "other streams worked 300 µs longer" in notes[0]
    assert "clock='wall'" in notes[0]


def test_several_cold_calls_in_a_sample_are_called_warm():
    timing = timing_by_events(Reading(100.0, 100.0), min_sample_us=1000.0)

    assert timing.calls_per_sample == 10
    assert timing.cache is Cache.WARM
    assert "cold for the first of them only" in timing.notes[0]
    assert timing_by_events(Reading(100.0, 100.0)).cache is Cache.COLD


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"fn": 3}, "got a int; it expects a callable"),
        ({"device": "tpu"}, "device='tpu'; it measures on 'cpu' and 'cuda'"),
        ({"clock": "sundial"}, "clock='sundial'; on cpu it knows 'auto', 'wall'"),
        ({"clock": "cuda_event", "device": "cpu"}, "clock='cuda_event'; on cpu"),
        ({"cache": "cold", "device": "cpu"}, "cache='cold'; on cpu with this clock it knows 'auto', 'warm'"),
        ({"cache": "cold", "clock": "cuda_graph", "device": "cuda"}, "cache='cold'; on cuda with this clock"),
        ({"max_samples": 4}, "at most 4 samples; it takes at least 5"),
        ({"budget_s": 0.0}, "budget_s=0.0"),
        ({"min_sample_us": -1.0}, "min_sample_us=-1.0"),
    ],
)
def test_what_cannot_be_measured_is_refused(options, named):
    options = {"fn": sum} | options
    with pytest.raises(TimingError, match=named.replace("(", r"\(")):
        time_callable(options.pop("fn"), [1], **options)


def test_the_device_is_where_the_tensors_lie():
    assert time_callable(torch.relu, torch.zeros(3), max_samples=5, warmup_s=0.0).device == "cpu"
    with pytest.raises(TimingError, match="device='meta'; it measures on 'cpu' and 'cuda'"):
        time_callable(torch.relu, torch.zeros(3, device="meta"))


def test_a_timing_without_samples_is_refused():
    with pytest.raises(TimingError, match="no samples"):
        Timing((), (), (), 1.0, 1, 0.0, "cpu", ClockName.WALL, Cache.WARM)


@pytest.mark.parametrize(
    ("time_us", "text"), [(0.0, "0 ns"), (0.999, "999 ns"), (1.0, "1 µs"), (1234.5, "1.23 ms"), (2.5e6, "2.5 s")]
)
def test_a_time_is_shown_in_the_unit_in_which_it_reads_best(time_us, text):
    assert format_us(time_us) == text
