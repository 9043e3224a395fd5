"""A state on its way from a device to a file, while the training goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class Staging:
    """Copies of one save's tensors in pinned memory of the host, which torch keeps for the next save.

    Those of a device are copied on a stream of its own, after all that its current stream was given
    before. That stream waits for the copies, and the host does not: what is launched later may change
    the tensors, in whichever way, and the host goes on. Streams that the caller has beside it are his.
    """

    def __init__(self) -> None:
        self._streams: dict[torch.device, torch.cuda.Stream] = {}
        self._copied: list[Any] = []  # torch.cuda.Event, by another name in each version

    @staticmethod
    def takes(tensor: torch.Tensor) -> bool:
        """Whether it lies where copies run beside the host."""
        on_device: bool = tensor.is_cuda
        return on_device

    def tensor(self, tensor: torch.Tensor) -> torch.Tensor:
        """The copy, which is there once wait() is back."""
        if not tensor.is_cuda:
            return tensor.clone(memory_format=torch.contiguous_format)
        copy = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        if tensor.device not in self._streams:
            self._streams[tensor.device] = torch.cuda.Stream(tensor.device)  # type: ignore[no-untyped-call, unused-ignore]
            self._streams[tensor.device].wait_stream(torch.cuda.current_stream(tensor.device))
        stream = self._streams[tensor.device]
        with torch.cuda.stream(stream):
            copy.copy_(tensor, non_blocking=True)
        tensor.record_stream(stream)  # its memory is not given to another before
        return copy

    def array(self, data: Any) -> Any:
        """The same of a buffer of the host."""
        return np.array(data)

    def begun(self) -> None:
        """To be called after the last of them: what is launched from here on comes after the copies."""
        for device, stream in self._streams.items():
            copied = stream.record_event()
            torch.cuda.current_stream(device).wait_event(copied)
            self._copied.append(copied)

    def wait(self) -> None:
        """Until all copies are there."""
        for copied in self._copied:
            copied.synchronize()
