"""What a Trainer keeps beside its weights, in .thalia files; and the callback that does so for any Trainer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from transformers.trainer_callback import ExportableState, TrainerCallback

from . import _core
from . import torch as thalia_torch
from ._files.writer import checked
from ._keywords import suggests
from ._support import io_errors, made_as
from ._trainer_folder import MARK, PROCESSES, random_name
from ._types import Path
from ._warn import warn_caller
from .errors import UnsupportedError, UsageError, make_error
from .torch._random_state import random_state, set_random_state

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

_TRAINING = "training.thalia"
#: What a Trainer pickles, by the names that it gives.
_PICKLES = ("optimizer.pt", "scheduler.pt", "scaler.pt", "training_args.bin")


def save_training(optimizer: Any, scheduler: Any, folder: Path, **options: Unpack[SaveOptions]) -> None:
    """The states of both. Raises as thalia_checkpoint.torch.save()."""
    os.makedirs(folder, exist_ok=True)
    thalia_torch.save({"optimizer": optimizer, "scheduler": scheduler}, os.path.join(folder, _TRAINING), **options)


def load_training(optimizer: Any, scheduler: Any, folder: Path) -> bool:
    """Into both; False if the folder has none."""
    path = os.path.join(folder, _TRAINING)
    if not os.path.exists(path):
        return False
    state = thalia_torch.load(path)
    for part, saved in ((optimizer, state["optimizer"]), (scheduler, state["scheduler"])):
        if part is not None:
            part.load_state_dict(saved)
    return True


def save_random(args: Any, folder: Path) -> None:
    """The states of this process's generators of random numbers. args: the Trainer's."""
    os.makedirs(folder, exist_ok=True)
    thalia_torch.save(random_state(), random_path(args, folder))


def load_random(args: Any, folder: Path) -> bool:
    """Sets them; False if the folder has none of this process."""
    if not os.path.exists(random_path(args, folder)):
        return False
    set_random_state(thalia_torch.load(random_path(args, folder)))
    return True


def write_arguments(args: Any, folder: Path) -> None:
    """The arguments of the training, as JSON."""
    _core.write_text(os.path.join(folder, "training_args.json"), args.to_json_string())


def unpickle_arguments(args: Any, folder: Path) -> None:
    """The same in the place of those that a Trainer has pickled."""
    write_arguments(args, folder)
    with io_errors(), suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, "training_args.bin"))


def random_path(args: Any, folder: Path) -> str:
    """Where save_random() puts those of this process."""
    return os.path.join(folder, random_name(args.process_index, args.world_size))


# The bases are Any to a checker of types that does not see transformers.
@suggests
class ThaliaCallback(TrainerCallback, ExportableState):  # type: ignore[misc, unused-ignore]
    """A callback of a Trainer of any class, such as SFTTrainer and Seq2SeqTrainer: its checkpoints have no
    pickles. The weights are as this Trainer saves them, which transformers opens.

        trainer = Trainer(model, args=args, train_dataset=data, callbacks=[ThaliaCallback()])
        trainer.train(resume_from_checkpoint=last_checkpoint(args.output_dir))

    The states of optimizer, scheduler and random number generators are .thalia files, the arguments
    training_args.json; they are there before trainer_state.json is, which a checkpoint without
    them never has. A checkpoint that a Trainer saved without the callback is resumed from as well.

    checkpoint: what train() resumes from, if that is not output_dir/checkpoint-N of its step.
    options: those of SaveOptions, for the state of the optimizer.
    """

    def __init__(self, *, checkpoint: Path | None = None, **options: Unpack[SaveOptions]) -> None:
        """Raises UsageError for an option that cannot be; TypeError for one that does not exist."""
        self._checkpoint = checkpoint
        self._options: Any = checked(options)
        self._training: tuple[Any, Any, Any] | None = None
        self._control: Any = None
        self._processes = 1
        self._random_of: FilePath | None = None

    def __repr__(self) -> str:
        return made_as(self, checkpoint=self._checkpoint, **self._options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **parts: Any) -> None:
        """Loads the states of optimizer and scheduler, where the training is resumed.

        Raises UnsupportedError for a training whose state is not all in each process, as with DeepSpeed and
        FSDP, for one with fp16, whose scaler no callback reaches, and for a search of parameters;
        UsageError where a checkpoint has no such states; IoError, FormatError, IntegrityError.
        """
        self._require_plain(args, state)
        # What else a Trainer saves are the pickles that these files are in place of.
        args.save_only_model = True
        self._training = (parts.get("optimizer"), parts.get("lr_scheduler"), (args, state))
        self._control = control
        self._random_of = None
        # Each node has the files of its own processes where each saves.
        self._processes = 1 if args.save_on_each_node else args.world_size
        if state.global_step == 0:
            return
        # A checkpoint that was saved without the callback lacks it, and the Trainer would miss it in its next save.
        state.stateful_callbacks.setdefault(type(self).__name__, self.state())
        folder = self._folder(args, state) if self._checkpoint is None else FilePath(self._checkpoint)
        if load_training(*self._training[:2], folder):
            self._random_of = folder
        elif not (folder / "optimizer.pt").exists():
            raise make_error(
                UsageError,
                f"{folder}: has neither {_TRAINING} nor optimizer.pt; ThaliaCallback(checkpoint=…) names what train() "
                "resumes from",
                "not_found",
                path=str(folder),
                field="checkpoint",
            )

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Between two epochs, random numbers go on before the data of the next one is shuffled."""
        if float(state.epoch or 0).is_integer():
            self._go_on(args)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Within an epoch, when its first batches have been passed over."""
        self._go_on(args)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint of the same step that is saved anew is none until it is complete again."""
        self._control = control
        if control.should_save:
            old = self._folder(args, state) / MARK if args.should_save else random_path(args, self._folder(args, state))
            with io_errors(), suppress(FileNotFoundError):
                os.unlink(old)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """As on_step_end()."""
        self.on_step_end(args, state, control)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The random states of the other processes, which is_whole() asks for."""
        if not args.should_save:
            save_random(args, self._folder(args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Lets go of the optimizer."""
        self._training = None

    def state(self) -> dict[str, Any]:
        """What trainer_state.json has of it. A Trainer asks for it right before it writes that file, which
        ends a checkpoint: what goes before is saved here."""
        if self._training is not None and self._control is not None and self._control.should_save:
            optimizer, scheduler, (args, state) = self._training
            folder = self._folder(args, state)
            if folder.is_dir():
                save_training(optimizer, scheduler, folder, **self._options)
                save_random(args, folder)
                write_arguments(args, folder)
                with io_errors():
                    for path in _pickles(folder):
                        with suppress(FileNotFoundError):
                            path.unlink()
        plain = {name: value for name, value in self._options.items() if isinstance(value, str | int | None)}
        return {"args": plain, "attributes": {PROCESSES: self._processes}}

    def _go_on(self, args: Any) -> None:
        folder, self._random_of = self._random_of, None
        if folder is not None and not load_random(args, folder):
            warn_caller(
                f"{random_path(args, folder)}: no such file, as another number of processes leaves it: the random "
                "numbers of this process do not go on"
            )

    def _folder(self, args: Any, state: Any) -> FilePath:
        return FilePath(args.output_dir) / f"checkpoint-{state.global_step}"

    def _require_plain(self, args: Any, state: Any) -> None:
        kinds = {
            "deepspeed": bool(args.deepspeed),
            "fsdp": bool(args.fsdp),
            "fp16": bool(args.fp16),
            "hyperparameter_search": bool(state.is_hyper_param_search),
        }
        for name, there in kinds.items():
            if there:
                raise make_error(
                    UnsupportedError,
                    f"{name}: a callback cannot save this training; ThaliaTrainerMixin knows its Trainer",
                    "unsupported_feature",
                    field=name,
                )


def _pickles(folder: FilePath) -> Iterator[FilePath]:
    yield from (folder / name for name in _PICKLES)
    yield from folder.glob("rng_state*.pth")
