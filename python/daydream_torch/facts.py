"""Facts about the process, once each: versions, models, ranks, DDP buckets."""

from __future__ import annotations

import functools
import weakref
from typing import Any, List

from daydream_torch import complain, names, sink
from daydream_torch.imports import when_imported
from daydream_torch.steps import Steps


def install(torch: Any, steps: Steps) -> None:
    sink.note("PyTorch", torch.__version__)
    names.on_new_root.append(functools.partial(_note_model, torch))
    when_imported("torch.distributed.distributed_c10d", functools.partial(_ranks, torch))
    when_imported("torch.nn.parallel.distributed", functools.partial(_buckets, steps))


def _note_model(torch: Any, name: str, root: Any) -> None:
    everything = list(root.parameters())
    # A lazy one (LazyLinear) has no shape until its first input has come.
    lazy = getattr(torch.nn.parameter, "UninitializedTensorMixin", ())
    parameters = [p for p in everything if not isinstance(p, lazy)]
    facts = [name, "parameters=%d" % sum(p.numel() for p in parameters)]
    if len(parameters) < len(everything):
        facts.append("lazy=%d" % (len(everything) - len(parameters)))
    if parameters:
        facts.append("dtype=%s" % str(parameters[0].dtype).replace("torch.", ""))
    if any(
        p.dim() == 4
        and p.is_contiguous(memory_format=torch.channels_last)
        and not p.is_contiguous()
        for p in parameters
    ):
        facts.append("memory_format=channels_last")
    if torch.is_autocast_enabled():
        facts.append("autocast=%s" % str(torch.get_autocast_gpu_dtype()).replace("torch.", ""))
    sink.note("model", " ".join(facts))


def _ranks(torch: Any, module: Any) -> None:
    original = module.init_process_group

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        try:
            rank, size = module.get_rank(), module.get_world_size()
            sink.mark(sink.RANK, 0, rank << 32 | size)
            sink.note("distributed", module.get_backend())
        except Exception as error:
            complain("the rank is unknown: %r" % (error,))
        return result

    module.init_process_group = init_process_group
    torch.distributed.init_process_group = init_process_group


def _buckets(steps: Steps, module: Any) -> None:
    """Sizes of the gradient buckets; DDP settles them after its first step."""
    models: List["weakref.ref[Any]"] = []
    original = module.DistributedDataParallel.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        models.append(weakref.ref(self))

    def note(number: int) -> None:
        if number < 4:
            return
        steps.on_step.remove(note)
        for model in filter(None, (reference() for reference in models)):
            data = model._get_ddp_logging_data()
            sizes = data.get("rebuilt_bucket_sizes") or data.get("bucket_sizes")
            sink.note("ddp", "%s bucket_bytes=%s" % (names.class_of(model), sizes))

    module.DistributedDataParallel.__init__ = __init__
    steps.on_step.append(note)
