"""As much of CuPy as the runtime calls, over memory of the host; kernels run under g++.

What is called has the names, the arguments and the habits of the real one: arguments of a kernel
are read at the addresses handed to the driver when the launch is queued.
"""

import ctypes
from types import SimpleNamespace

import numpy as np

from meshprep_cuda_check.emulated import EmulatedDevice
from meshprep_cuda_check.emulated import Stream as Queue
from meshprep_runtime.cuda.build import Compiled

FUNCTION, MAX_SHARED, REGISTERS = 4711, 8, 4
COPIES = {"HostToDevice": 1, "DeviceToHost": 2, "DeviceToDevice": 3}


class Stream:
    """``with`` makes it the current one."""

    def __init__(self, cupy, non_blocking=False, ptr=None):
        self.cupy = cupy
        self.queue = Queue()
        self.ptr = id(self) if ptr is None else ptr
        self.non_blocking = non_blocking
        self.recording = False
        cupy.streams[self.ptr] = self

    def __enter__(self):
        self.before, self.cupy.stream = self.cupy.stream, self
        return self

    def __exit__(self, *_):
        self.cupy.stream = self.before

    def begin_capture(self):
        assert self.non_blocking, "the legacy stream cannot be recorded"
        self.synchronize()
        self.recording = True

    def end_capture(self):
        assert self.recording
        self.recording, work = False, list(self.queue.waiting)
        self.queue = Queue()
        self.cupy.graphs += 1
        return SimpleNamespace(launch=lambda: [self.cupy.stream.queue.add(w) for w in work])

    def record(self):
        return Event(self.queue)

    def wait_event(self, event):
        assert not self.recording, "work that is not recorded"
        self.queue.add(lambda: event.queue.finish(event.until))

    def synchronize(self):
        assert not self.recording
        self.queue.finish(self.queue.added)


class Event:
    """A place in a queue; its time is the number of things done before it, in milliseconds."""

    def __init__(self, queue):
        self.queue, self.until = queue, queue.added

    def synchronize(self):
        self.queue.finish(self.until)

    def device_time(self):
        assert self.queue.added - len(self.queue.waiting) >= self.until
        return float(self.until)


class FakeCupy:
    """``cupy``, with ``cuda.runtime``, ``cuda.driver`` and ``cuda.function``."""

    def __init__(self, arch="90", most_shared=227 * 1024):
        self.arch, self.most_shared = arch, most_shared
        self.device = EmulatedDevice()
        self.streams, self.programs, self.attributes = {}, {}, []
        self.graphs = self.launches = 0
        self.stream = Stream(self, ptr=0)
        # Arrays come back when the current stream is done.
        self.device.synchronize = lambda: self.stream.synchronize()
        # What is set goes to the current stream, as kernels do.
        self.device.write = self._write
        self.cuda = SimpleNamespace(
            runtime=self._runtime(),
            driver=self._driver(),
            function=SimpleNamespace(Module=lambda: Module(self)),
            alloc=self._alloc,
            get_current_stream=lambda: self.stream,
            Stream=lambda non_blocking: Stream(self, non_blocking),
            get_elapsed_time=lambda start, end: end.device_time() - start.device_time(),
            Device=lambda number: SimpleNamespace(id=number, compute_capability=self.arch),
        )

    def compiled(self, program, arch):
        """In place of the compiler: code that names its program."""
        assert arch == f"sm_{self.arch}"
        cubin = b"code %d" % len(self.programs)
        self.programs[cubin] = program
        return Compiled(cubin, 32, 0)

    def asarray(self, values):
        return self.device.array(values)

    def zeros(self, shape, dtype):
        return self.device.zeros(shape, dtype)

    def ones(self, shape):
        return self.asarray(np.ones(shape))

    def from_dlpack(self, value):
        return value.__dlpack__()

    def _alloc(self, nbytes):
        memory = self.device.upload(np.full(nbytes, 0xCD, np.uint8))
        return SimpleNamespace(ptr=memory.pointer, memory=memory)

    def _write(self, memory, values):
        kind = COPIES["HostToDevice"]
        given = np.ascontiguousarray(values)
        self._copy(memory.pointer, given.ctypes.data, given.nbytes, kind, self.stream.ptr)

    def _runtime(self):
        def attribute(number, device):
            assert (number, device) == (97, 0)
            return self.most_shared

        def where(pointer):
            there = self.device.span(pointer) is not None
            return SimpleNamespace(device=0 if there else -2, type=2 if there else 0)

        return SimpleNamespace(
            free=lambda pointer: None,
            getDevice=lambda: 0,
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 13000,
            getDeviceProperties=lambda number: {"name": b"Fake GPU"},
            deviceGetAttribute=attribute,
            cudaDevAttrMaxSharedMemoryPerBlockOptin=97,
            pointerGetAttributes=where,
            memcpyAsync=self._copy,
            **{f"memcpy{way}": kind for way, kind in COPIES.items()},
        )

    def _copy(self, to, source, nbytes, kind, stream):
        queue = self.streams[stream].queue
        assert not self.streams[stream].recording
        if kind == COPIES["HostToDevice"]:
            # Memory that is not pinned is read before the call returns.
            content = ctypes.string_at(source, nbytes)
            assert self.device.span(to) >= nbytes
            queue.add(lambda: ctypes.memmove(to, content, nbytes))
        else:
            assert self.device.span(source) >= nbytes
            queue.add(lambda: ctypes.memmove(to, source, nbytes))

    def _driver(self):
        return SimpleNamespace(
            launchKernel=self._launch,
            funcSetAttribute=self._set,
            funcGetAttribute=lambda attribute, function: 40,
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=MAX_SHARED,
            CU_FUNC_ATTRIBUTE_NUM_REGS=REGISTERS,
        )

    def _set(self, function, attribute, value):
        assert attribute == MAX_SHARED
        self.attributes.append(value)

    def _launch(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        program = self.programs[function]
        assert (gy, gz, by, bz, extra) == (1, 1, 1, 1, 0)
        assert (bx, shared) == (program.threads, program.shared_bytes)
        count = len(program.parameters)
        addresses = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))[:count]
        values = [ctypes.c_longlong.from_address(a).value for a in addresses]
        self.launches += 1
        self.device.load(program).prepare(gx, values)(self.streams[stream].queue)


class Module:
    """Machine code that names its program by its digest."""

    def __init__(self, cupy):
        self.cupy = cupy

    def load(self, cubin):
        assert type(cubin) is bytes
        self.program = self.cupy.programs[cubin]

    def get_function(self, name):
        assert name == self.program.name
        pointer = FUNCTION + len(self.cupy.programs)
        self.cupy.programs[pointer] = self.program
        return SimpleNamespace(ptr=pointer, module=self)
