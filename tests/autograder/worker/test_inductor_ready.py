"""A zygote that prepares for lowering asks for no GPU, since its forks could not use one; with a stand-in driver."""

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch._inductor import codecache
from torch._subclasses import FakeTensorMode

from autograder.host.sandbox.compute_device import Device
from autograder.host.sandbox.interpreter import environment, zygote_environment
from tests.simulated_gpu import SimulatedDriver

DEVICE = Device("cuda", ("/dev/nvidia0",), visible="0")


def in_a_fork(work: Callable[[], Any], folder: Path) -> Any:
    """Return the result of `work` in a fork of this process, which cannot change this one."""
    result = folder / f"result-{os.getpid()}.json"
    child = os.fork()
    if child == 0:
        try:
            result.write_text(json.dumps(work()))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return json.loads(result.read_text())


def asked(variables: Mapping[str, str], prepare: Callable[[], object], folder: Path) -> dict[str, Any]:
    """Prepare as a zygote with these variables does, with a torch for CUDA; then ask for a GPU in a worker."""
    os.environ.clear()
    os.environ.update(variables)
    driver = SimulatedDriver()
    torch._C._cuda_getDeviceCount = driver.count
    prepare()

    def worker() -> bool:
        os.environ.clear()
        os.environ.update(environment("/", DEVICE))
        return torch.cuda.is_available()

    return {"asked": len(driver.asked_in), "worker sees the GPU": in_a_fork(worker, folder)}


def for_lowering() -> None:
    if hasattr(codecache, "triton_key"):
        del codecache.triton_key  # torch 2.11 has none
    sys.modules.pop("autograder.worker.inductor_ready", None)
    importlib.import_module("autograder.worker.inductor_ready")


def test_workers_of_a_zygote_that_prepared_for_lowering_see_their_gpu(tmp_path: Path) -> None:
    found = in_a_fork(lambda: asked(zygote_environment("/", DEVICE), for_lowering, tmp_path), tmp_path)

    assert found == {"asked": 0, "worker sees the GPU": True}


def test_a_question_that_the_preparation_asks_loses_the_gpu_with_the_variables_of_a_worker(tmp_path: Path) -> None:
    def one_of_many() -> bool:
        return FakeTensorMode().avoid_device_init

    found = in_a_fork(lambda: asked(environment("/", DEVICE), one_of_many, tmp_path), tmp_path)

    assert found == {"asked": 1, "worker sees the GPU": False}
