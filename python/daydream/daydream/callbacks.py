"""`record` as a callback of Lightning and of the Trainer of Hugging Face.

    trainer = lightning.Trainer(callbacks=[dd.callbacks.lightning("run.json.gz")])
    trainer = transformers.Trainer(..., callbacks=[dd.callbacks.hugging_face("run.json.gz")])

Arguments are those of `record`. After training, `callback.recorder.trace()` is the recording. The
frameworks are imported here, when asked for.
"""

from __future__ import annotations

import sys
from typing import Any

from daydream.recording import record


def _missing(what: str, package: str, error: ImportError) -> ImportError:
    return ImportError(
        "this callback is for %s, which %s cannot import (%s): pip install %s"
        % (what, sys.executable or "this Python", error, package)
    )


def lightning(path: Any, **arguments: Any) -> Any:
    """A lightning.pytorch.Callback (pytorch_lightning where there is no lightning). ImportError
    where there is neither."""
    try:
        try:
            from lightning.pytorch import Callback
        except ImportError:
            from pytorch_lightning import Callback
    except ImportError as error:
        raise _missing("Lightning", "lightning", error) from error

    class DaydreamCallback(Callback):
        def __init__(self):
            super().__init__()
            self.recorder = record(path, **arguments)
            self._steps = 0

        def on_train_start(self, trainer, pl_module):
            self._steps = trainer.global_step
            self.recorder.__enter__()

        def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
            # With accumulate_grad_batches several batches are one step.
            if trainer.global_step != self._steps:
                self._steps = trainer.global_step
                self.recorder.step()

        def on_train_end(self, trainer, pl_module):
            self.recorder.__exit__(None, None, None)

        def on_exception(self, trainer, pl_module, exception):
            self.recorder.__exit__(type(exception), exception, exception.__traceback__)

    return DaydreamCallback()


def hugging_face(path: Any, **arguments: Any) -> Any:
    """A transformers.TrainerCallback. ImportError where transformers is not installed. A Trainer tells
    it nothing of an exception: where one is caught, callback.recorder.__exit__() ends the recording."""
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise _missing("the Trainer of Hugging Face", "transformers", error) from error

    class DaydreamCallback(TrainerCallback):
        def __init__(self):
            self.recorder = record(path, **arguments)

        def on_train_begin(self, args, state, control, **kwargs):
            self.recorder.__enter__()

        def on_step_end(self, args, state, control, **kwargs):
            self.recorder.step()

        def on_train_end(self, args, state, control, **kwargs):
            self.recorder.__exit__(None, None, None)

    return DaydreamCallback()
