"""Read the machine on which times are measured, since a time has no meaning without it."""

import contextlib
import dataclasses
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

# From NVIDIA's nvbench, which discards samples taken below this share of the highest clock.
LEAST_CLOCK_SHARE = 0.75
SMI_FIELDS = {
    "name": "name",
    "driver": "driver_version",
    "clock_mhz": "clocks.sm",
    "max_clock_mhz": "clocks.max.sm",
    "temperature_c": "temperature.gpu",
    "power_w": "power.draw",
}
SMI_TIMEOUT_S = 10.0
PATIENCE_S = 5.0  # until a problem counts as lasting
FIRST_NAMESPACE = 0xEFFFFFFC  # of process ids, from the kernel's PROC_PID_INIT_INO


@dataclass(frozen=True)
class Gpu:
    """Describe one CUDA device by `nvidia-smi`; None for what it does not report."""

    name: str
    driver: str | None
    clock_mhz: float | None  # of the streaming multiprocessors, now
    max_clock_mhz: float | None
    temperature_c: float | None
    power_w: float | None
    other_processes: tuple[int, ...]  # process ids that compute on it besides ours


@dataclass(frozen=True)
class Environment:
    """Hold machine, versions, threads and clocks; None for what could not be read."""

    processor: str
    cores: int  # that this process may use
    threads: int | None  # that torch uses within one operator
    clock_mhz: float | None  # of the first core, now
    memory_bytes: int | None
    load_average: float | None  # mean number of runnable processes over the last minute, ours included
    system: str
    python: str
    torch: str | None
    cuda: str | None  # the version torch was built with
    gpu: Gpu | None

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what makes a verdict on speed unfair on this machine, for `decide_speedup(problems=...)`.

        A busy CPU is no problem, since it slows both sides of a pair.
        """
        gpu, found = self.gpu, []
        if gpu and gpu.other_processes:
            found.append(f"{len(gpu.other_processes)} other processes compute on {gpu.name}")
        if gpu and gpu.clock_mhz and gpu.max_clock_mhz and gpu.clock_mhz < LEAST_CLOCK_SHARE * gpu.max_clock_mhz:
            found.append(f"{gpu.name} runs at {gpu.clock_mhz:.0f} MHz of {gpu.max_clock_mhz:.0f}")
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        clock = f" at {self.clock_mhz:.0f} MHz" if self.clock_mhz else ""
        memory = f", {self.memory_bytes / 2**30:.0f} GiB" if self.memory_bytes else ""
        load = f", load {self.load_average:.1f}" if self.load_average is not None else ""
        lines = [
            f"{self.processor}{clock}, {self.cores} cores, torch threads: {self.threads or '?'}{memory}{load}",
            f"{self.system}, Python {self.python}, torch {self.torch or 'not loaded'}, CUDA {self.cuda or 'none'}",
        ]
        if self.gpu:
            known = {k: v for k, v in dataclasses.asdict(self.gpu).items() if v not in (None, ()) and k != "name"}
            lines.append(f"{self.gpu.name}: {', '.join(f'{k} {v}' for k, v in known.items())}")
        return "\n".join(lines)

    __repr__ = __str__


def environment() -> Environment:
    """Read the machine, the installed versions, and the clock frequencies.

        >>> environment().cores >= 1
        True

    The GPU is read only if this process uses one, which takes about 0.1 s.
    """
    torch = sys.modules.get("torch")  # a package that is not loaded has no settings yet
    uses_cuda = torch is not None and torch.cuda.is_initialized()
    return Environment(
        processor=(_cpuinfo("model name") or platform.processor() or platform.machine() or "unknown processor"),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads=torch.get_num_threads() if torch else None,
        clock_mhz=_number(_cpuinfo("cpu MHz")),
        memory_bytes=_memory_bytes(),
        load_average=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        system=platform.platform(),
        python=platform.python_version(),
        torch=version_of("torch"),
        cuda=torch.version.cuda if torch else None,
        gpu=_gpu_of(torch) if torch and uses_cuda else None,
    )


def lasting_problems(
    stay_busy: Callable[[], object],
    *,
    read: Callable[[], Environment] = environment,
    patience_s: float = PATIENCE_S,
    now_s: Callable[[], float] = time.monotonic,
) -> tuple[str, ...]:
    """Return the problems that a GPU still has while it works.

    An idle GPU shows a low clock, and a process that has just ended is listed for a while. So `stay_busy` queues work
    for the GPU without waiting, before each reading, until a reading has no problem or the time is over.
    """
    end_s = now_s() + patience_s
    while True:
        stay_busy()
        problems = read().problems
        if not problems or now_s() >= end_s:
            return problems


def parse_gpu(fields: str, processes: str, own_process: int, *, in_container: bool = False) -> Gpu:
    """Read what `nvidia-smi` printed: one line of SMI_FIELDS, and one process id a line.

    >>> parse_gpu("NVIDIA T4, 535.1, 585, 1590, 40, [N/A]", "12\\n77\\n", own_process=12)
    Gpu(name='NVIDIA T4', driver='535.1', clock_mhz=585.0, max_clock_mhz=1590.0, temperature_c=40.0, power_w=None, \
other_processes=(77,))

    In a container the ids may be those of the host, where this process has another. Then one of them is ours.
    """
    values = dict(zip(SMI_FIELDS, (part.strip() for part in fields.strip().split(",")), strict=False))
    ids = [int(line) for line in processes.split() if line.isdigit()]
    others = [number for number in ids if number != own_process]
    if len(others) == len(ids) and in_container:
        others = others[1:]
    return Gpu(
        name=values["name"],
        driver=values.get("driver"),
        clock_mhz=_number(values.get("clock_mhz")),
        max_clock_mhz=_number(values.get("max_clock_mhz")),
        temperature_c=_number(values.get("temperature_c")),
        power_w=_number(values.get("power_w")),
        other_processes=tuple(others),
    )


def _gpu_of(torch: Any) -> Gpu | None:
    uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    return _gpu(uuid, has_context=torch.cuda.memory_reserved() > 0)


def _gpu(uuid: str, *, has_context: bool) -> Gpu | None:
    identifier = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
    fields = _nvidia_smi(f"--query-gpu={','.join(SMI_FIELDS.values())}", identifier)
    if not fields:
        return None
    processes = _nvidia_smi("--query-compute-apps=pid", identifier)
    return parse_gpu(fields, processes, os.getpid(), in_container=has_context and _in_container())


def _in_container() -> bool:
    """Tell whether process ids here differ from those that the driver knows."""
    with contextlib.suppress(OSError):
        return Path("/proc/self/ns/pid").stat().st_ino != FIRST_NAMESPACE
    return False


def _nvidia_smi(query: str, identifier: str) -> str:
    """Return the output of `nvidia-smi`, or an empty text if it fails or is not installed."""
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits", f"--id={identifier}"]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=SMI_TIMEOUT_S).stdout
    return ""


def _cpuinfo(key: str) -> str | None:
    """Return the first entry of this name in /proc/cpuinfo, where there is one."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return None


def _memory_bytes() -> int | None:
    with contextlib.suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None


def _number(text: str | None) -> float | None:
    with contextlib.suppress(ValueError, TypeError):
        return float(text or "")
    return None
