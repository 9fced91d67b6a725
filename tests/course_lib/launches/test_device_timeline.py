"""Test the timelines of launches, eager and replayed."""

from dataclasses import replace

import pytest
import torch

from course_lib.launches import eager_timeline, recording, replay_timeline

LAUNCHES = recording(lambda x: (x + 1) * x, torch.ones(250))  # 2,000 and 3,000 bytes


def test_small_kernels_wait_for_the_host() -> None:
    eager = eager_timeline(LAUNCHES, launch_us=5, bandwidth_gb_s=1, least_us=0)
    assert [(span.start_us, span.end_us) for span in eager.device] == [(5, 7), (10, 13)]
    assert (eager.total_us, eager.busy_us) == (13, 5)


def test_large_kernels_wait_for_each_other() -> None:
    eager = eager_timeline(LAUNCHES, launch_us=1, bandwidth_gb_s=1, least_us=0)
    assert [span.start_us for span in eager.device] == [1, 3]


def test_a_kernel_takes_its_least_time_however_few_its_bytes_are() -> None:
    device = {"launch_us": 5, "bandwidth_gb_s": 1, "least_us": 2.5}
    assert (eager_timeline(LAUNCHES, **device).busy_us, replay_timeline(LAUNCHES, **device).busy_us) == (5.5, 5.5)


def test_a_replay_is_one_launch() -> None:
    replay = replay_timeline(LAUNCHES, launch_us=5, bandwidth_gb_s=1, least_us=0)
    assert len(replay.host) == 1
    assert replay.total_us == pytest.approx(5 + 2 + 1 + 3)


def test_the_picture_says_in_words_what_it_shows() -> None:
    eager = replace(eager_timeline(LAUNCHES, launch_us=5, bandwidth_gb_s=1, least_us=0), scale_us=26.0)
    text = "eager: 2 launches by the host, 2 kernels, 13.0 µs in all; the device computes for 5.0 µs, 38% of the time."
    assert str(eager) == text
    assert f'alt="{text}"' in eager._repr_html_()
    assert eager._svg("").count("<rect") == 1 + 2 + 2


def test_two_pictures_have_one_scale_if_asked() -> None:
    replay = replay_timeline(LAUNCHES, launch_us=5, bandwidth_gb_s=1, least_us=0, scale_us=13.0)
    assert ">13 µs<" in replay._svg("")
    assert ">11 µs<" in replace(replay, scale_us=0.0)._svg("")
