"""The interface of every level: start a worker under limits, forked from the zygote if there is one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.levels import SandboxError
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.resource_limits import Limits
from autograder.host.sandbox.view import outside_course
from autograder.host.sandbox.zygote import Zygote, ZygotePool

WORKER = "from autograder.worker.main import main\nmain(fd=3)\n"
COLD = "workers are started cold, which takes longer"
WORKER_WITH_GPU = "from autograder.worker.main import main\nmain(fd=3, cuda=True)\n"


class Sandbox(ABC):
    """A way to run student code; `level` and `notes` go into every record."""

    level: int
    zygotes: ZygotePool | None = None
    """The zygotes that fork the workers; None where each worker starts cold."""
    measures_on_cpu: bool = False
    """Whether measured speed earns points although the workers have no GPU: an instructor's choice."""
    _device: Device = CPU
    _notes: tuple[str, ...] = ()
    cold_because: str = ""
    """Why no worker is forked; empty where they are."""

    @property
    def has_cuda(self) -> bool:
        """Tell whether the workers have a GPU."""
        return self._device.cuda

    @property
    def measures(self) -> bool:
        """Tell whether measured speed earns points here; elsewhere counted cost earns them."""
        return self.has_cuda or self.measures_on_cpu

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences about this sandbox beyond the description of its level."""
        return (*self._notes, f"{COLD}: {self.cold_because}") if self.cold_because else self._notes

    @property
    def device_name(self) -> str:
        """Return the workers' device: `cpu`, or the file in /dev of their GPU, however it was chosen."""
        return self._device.nodes[0] if self._device.cuda else self._device.name

    def start(self, *, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        """Start a worker; its descriptor 3 is the other end of `WorkerProcess.socket`.

        `masked` names packages or modules of course_lib that do not exist for this worker, or packages and modules of
        others, which are empty for it, such as torch._dynamo, or torch itself. The worker is forked from the zygote,
        which takes a twentieth of the time of a cold start. If that fails, it starts cold, equally isolated, and a note
        is added.
        """
        program = WORKER_WITH_GPU if self.has_cuda else WORKER
        zygotes = self._zygotes_without(masked)
        if zygotes is None:
            return self._start(program, limits, masked)
        try:
            return self._fork(zygotes, program, limits, masked)
        except SandboxError as error:
            worker = self._start(program, limits, masked)  # if this fails too, the zygote was not the cause
            self.start_cold(str(error))
            return worker

    def expect(self, *work: str, masked: Sequence[str] = ()) -> None:
        """Preload the modules that workers need for "graphs", "lowering" or "lightning"; later workers start faster."""
        zygotes = self._zygotes_without(masked)
        if zygotes is not None:
            zygotes.want(*work)

    def start_cold(self, reason: str) -> None:
        """Start every worker cold from now on, and give `reason` in the notes."""
        zygotes, self.zygotes = self.zygotes, None
        if zygotes is not None:
            zygotes.close()
        self.cold_because = reason

    def _zygotes_without(self, masked: Sequence[str]) -> ZygotePool | None:
        """Return zygotes that have imported nothing masked; None if a worker without it has to start cold."""
        return None if outside_course(masked) else self.zygotes

    @abstractmethod
    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        """Start `program`, given as text, in a cold worker."""

    def _fork(self, zygotes: ZygotePool, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        """Start `program`, given as text, in a child of a zygote, as isolated as by `_start`."""
        raise SandboxError(f"Level {self.level:d} has no zygote.")

    def _zygote(self, *, preload: bool) -> Zygote:
        """Start a zygote; without `preload` it imports nothing, which is enough to test its isolation."""
        raise SandboxError(f"Level {self.level:d} has no zygote.")
