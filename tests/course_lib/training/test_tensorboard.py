"""TensorBoard's server answers with what a run wrote, and its page says what it is."""

import json
import time
import urllib.request

import pytest

from course_lib.errors import TrainingError
from course_lib.training import dashboard


@pytest.fixture
def run(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path / "first run") as writer:
        for step in range(3):
            writer.add_scalar("loss/train", 1.0 / (step + 1), step)
    return tmp_path


def scalars(url):
    with urllib.request.urlopen(f"{url}data/plugin/scalars/tags") as answer:
        return json.load(answer)


def test_the_server_shows_the_scalars_of_a_run(run, monkeypatch):
    monkeypatch.delenv("TENSORBOARD_PROXY_URL", raising=False)
    shown = dashboard(run)
    deadline_s = time.monotonic() + 20
    while not (found := scalars(shown.url)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert list(found["first run"]) == ["loss/train"]
    page = shown._repr_html_()
    assert shown.url in page
    assert 'title="TensorBoard: scalars, graph and histograms of ' in page


def test_behind_a_proxy_the_page_is_asked_for_through_it(run, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_PROXY_URL", "/proxy/%PORT%/")
    parts = dashboard(str(run)).url.strip("/").split("/")
    assert parts[0] == "proxy"
    assert parts[1].isdecimal()


def test_a_folder_that_is_not_there_is_refused_in_words(tmp_path):
    with pytest.raises(TrainingError, match=r"got .*nowhere, where there is no folder"):
        dashboard(str(tmp_path / "nowhere"))
