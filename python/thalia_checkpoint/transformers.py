"""Models and trainings of Hugging Face's transformers.

    from thalia_checkpoint.transformers import ThaliaTrainer, from_pretrained, last_checkpoint, save_pretrained

    trainer = ThaliaTrainer(model, args, train_dataset=data)    # or any Trainer with callbacks=[ThaliaCallback()]
    trainer.train(resume_from_checkpoint=last_checkpoint(args.output_dir))

    save_pretrained(model, "folder")
    model = from_pretrained(AutoModelForCausalLM, "folder", mmap=True)

No pickle is read or written.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, GenerationConfig, PretrainedConfig, PreTrainedModel, Trainer

from . import _trainer_folder
from . import torch as thalia_torch
from ._files.named import Format, check_format
from ._keywords import suggests
from ._trainer_callback import (
    ThaliaCallback,
    load_random,
    load_training,
    save_random,
    save_training,
    unpickle_arguments,
    write_arguments,
)
from ._trainer_folder import last_checkpoint
from ._types import Path
from .errors import UsageError, make_error
from .torch._misfit import LoadReport, misfit
from .torch._shards_save import save_shards

if TYPE_CHECKING:
    from typing import Unpack

    from ._files.writer import SaveOptions

__all__ = [
    "ThaliaCallback",
    "ThaliaTrainer",
    "ThaliaTrainerMixin",
    "from_pretrained",
    "last_checkpoint",
    "save_pretrained",
]

_GENERATION = "generation_config.json"
#: What torch.compile() calls what it wraps.
_COMPILED = "_orig_mod"


@suggests
def save_pretrained(
    model: PreTrainedModel | torch.nn.Module,
    folder: Path,
    *,
    max_shard_size: int | str = "5GB",
    format: Format = "safetensors",
    **options: Unpack[SaveOptions],
) -> None:
    """Writes a model's configuration, and its weights as folder/model.safetensors, tied ones once; in several
    files and model.safetensors.index.json if they have more than `max_shard_size` bytes.
    transformers opens the folder. With the format "thalia", which from_pretrained() alone opens, the files
    are .thalia files: with checksums, and compressed if that is asked for.

    Weights that the folder had stay whole until the new ones are; then they are removed.

    model: may be wrapped by torch.compile(), as a whole or its parts, and for data parallelism, and is
        saved as if it was not. If there are several processes, one of them calls this.
    max_shard_size: bytes, or a text such as "500MB". options: those of SaveOptions; of safetensors
        files those of compression and checksums are refused.
    Raises UsageError for another size, format or option, for what is no PreTrainedModel, and for one with
        adapters; ExistsError with replace=False; IoError; UnsupportedError for a dtype that no file holds.
    """
    if check_format(format) == "safetensors":
        _refuse_unheld(options)
    model = _unwrapped(model)
    os.makedirs(folder, exist_ok=True)
    config = copy.deepcopy(model.config)
    config.dtype = model.dtype
    config.architectures = [type(model).__name__]
    for name in ("config.json", "generation_config.json"):  # which transformers writes
        _refuse_link(os.path.join(folder, name))
    config.save_pretrained(folder)
    if model.can_generate() and model.generation_config is not None:
        model.generation_config.save_pretrained(folder)
    save_shards(_weights(model), folder, max_shard_size, format, options)


#: Options of what a safetensors file cannot hold.
_UNHELD = ("compression", "compression_level", "chunk_bytes", "checksum", "leaves", "timestamp")


def _refuse_unheld(options: Mapping[str, Any]) -> None:
    for name in _UNHELD:
        if options.get(name) not in (None, "none"):
            raise make_error(
                UsageError,
                f"{name}: got {options[name]!r}, which safetensors files cannot hold; format='thalia' can",
                "bad_argument",
                field=name,
                value=str(options[name]),
            )


def _refuse_link(path: str) -> None:
    if os.path.islink(path):
        raise make_error(
            UsageError,
            f"{path}: a link, through which nothing is written: remove it first",
            "bad_argument",
            path=path,
        )


def _unwrapped(model: torch.nn.Module) -> PreTrainedModel:
    """The model itself, of which from_pretrained() can make another."""
    inner = model
    while not isinstance(inner, PreTrainedModel):
        wrapped = inner._modules.get(_COMPILED) if isinstance(inner, torch.nn.Module) else None
        if isinstance(inner, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
            wrapped = inner.module
        if wrapped is None:
            expected = "a transformers.PreTrainedModel, or one in torch.compile() or for data parallelism"
            if hasattr(inner, "merge_and_unload"):  # peft's
                expected = f"{_NO_ADAPTERS}; its merge_and_unload() gives the whole model"
            raise _no_model(inner, expected)
        inner = wrapped
    if getattr(inner, "_hf_peft_config_loaded", False):
        raise _no_model(inner, _NO_ADAPTERS, " with adapters")
    return inner


_NO_ADAPTERS = "one without adapters; its own save_pretrained() writes these"


def _no_model(model: object, expected: str, more: str = "") -> Exception:
    kind = f"{type(model).__module__}.{type(model).__qualname__}{more}"
    text = f"model: got {kind}, expected {expected}"
    return make_error(UsageError, text, "bad_argument", field="model", value=kind, expected=expected)


def _weights(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The weights by name. Tied weights are left out if transformers ties them to another when it reads the
    configuration. Those that are tied in memory alone stay: they would be missing then."""
    state = {name.replace(f"{_COMPILED}.", ""): tensor for name, tensor in model.state_dict(keep_vars=True).items()}
    find = getattr(model, "get_expanded_tied_weights_keys", None)  # older versions tie, and read, in other ways
    tied: dict[str, str] = find(all_submodels=True) if find else {}
    return {name: tensor for name, tensor in state.items() if name not in tied or state.get(tied[name]) is not tensor}


@suggests
def from_pretrained(
    cls: Any, folder: Path, *, mmap: bool = False, dtype: torch.dtype | str = "auto", **kwargs: Any
) -> Any:
    """The model of a folder, in evaluation mode; its weights are .thalia or safetensors files, whole or
    in shards, as of save_pretrained() or of transformers.

    cls: a model class, or an Auto class such as AutoModelForCausalLM.
    mmap: weights lie in a private mapping of the files, and are read when touched: for inference.
        Those that are converted to another dtype, or put together of several, are copied.
    dtype: of the weights; "auto" is the configuration's.
    kwargs: those of transformers' from_pretrained() that it takes beside weights, such as device_map,
        attn_implementation, quantization_config, key_mapping and config; and members of the configuration.
        With output_loading_info=True the result is a pair, as there.

    transformers puts the weights in place; it reports those that the class has no place for.
    Raises UsageError that lists the weights that are missing, or, without ignore_mismatched_sizes=True, of
    another shape, and for arguments that find or read weights in another way; IoError, FormatError,
    IntegrityError.
    """
    for name in _OF_WEIGHTS:
        if kwargs.get(name) is not None:
            raise make_error(
                UsageError,
                f"{name}: got {kwargs[name]!r}, but the weights are those of the folder",
                "bad_argument",
                field=name,
                value=str(kwargs[name]),
            )
        kwargs.pop(name, None)
    if (other := kwargs.pop("torch_dtype", None)) is not None:  # as older versions call it
        dtype = other
    with_info = bool(kwargs.pop("output_loading_info", False))
    any_size = bool(kwargs.pop("ignore_mismatched_sizes", False))
    weights = thalia_torch.load(folder, mmap=mmap)
    config = kwargs.pop("config", None)
    if not isinstance(config, PretrainedConfig):
        of_code = {name: kwargs[name] for name in _OF_CODE if name in kwargs}
        source = folder if config is None else config
        found: Any = AutoConfig.from_pretrained(source, return_unused_kwargs=True, **kwargs)
        config, kwargs = found[0], {**found[1], **of_code}
    if hasattr(cls, "from_config"):
        # The class is asked for with a model that has no elements.
        with torch.device("meta"):
            blank = cls.from_config(config, **{name: kwargs[name] for name in _OF_CODE if name in kwargs})
        cls, config = type(blank), blank.config
    generation = kwargs.pop("generation_config", None)
    if generation is None and os.path.exists(os.path.join(folder, _GENERATION)):
        generation = GenerationConfig.from_pretrained(folder)
    model, info = cls.from_pretrained(
        None,
        config=config,
        state_dict=weights,
        generation_config=generation,
        dtype=dtype,
        output_loading_info=True,
        ignore_mismatched_sizes=True,  # all of them are listed here
        **kwargs,
    )
    mismatched = [
        f"{name}: {list(theirs)} in the file, {list(ours)} in the module"
        for name, theirs, ours in sorted(info["mismatched_keys"])
    ]
    if info["missing_keys"] or (mismatched and not any_size):
        raise misfit(folder, LoadReport([], sorted(info["missing_keys"]), [], mismatched))
    model.name_or_path = model.config.name_or_path = os.fspath(folder)
    return (model, info) if with_info else model


#: Arguments of transformers' that say where weights are, or how they are read.
_OF_WEIGHTS = ("state_dict", "subfolder", "variant", "gguf_file", "use_safetensors", "from_tf", "from_flax")
#: Those about code that a model brings along.
_OF_CODE = ("trust_remote_code", "code_revision")


if TYPE_CHECKING:
    from transformers import Trainer as _Trainer
else:
    _Trainer = object  # it goes before any Trainer


class ThaliaTrainerMixin(_Trainer):  # type: ignore[misc, unused-ignore]
    """Makes the checkpoints of a Trainer free of pickles: the states of optimizer, scheduler and random number
    generators are .thalia files, the weights safetensors, the arguments training_args.json.

        class Seq2Seq(ThaliaTrainerMixin, Seq2SeqTrainer): ...
        class SFT(ThaliaTrainerMixin, SFTTrainer): ...

    `save_total_limit` counts whole checkpoints alone, in the order of their saves, which
    output_dir/checkpoints.json has; one of the same step is kept until the new one is whole.

    With DeepSpeed or FSDP these save the optimizer and the weights in their own way, with pickles. Their
    models, those with adapters, quantized ones, and those that are no PreTrainedModel are saved as Trainer
    does.
    """

    max_shard_size: int | str = "5GB"
    """The largest size of a file with weights, as in save_pretrained()."""

    _limit: int | None = None

    # transformers has no public way to replace these.

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        run = FilePath(self._get_output_dir(trial=kwargs.get("trial", args[1] if len(args) > 1 else None)))
        checkpoint = run / f"checkpoint-{self.state.global_step}"
        limit = self._limit = self.args.save_total_limit
        if self.args.should_save:
            _trainer_folder.put_aside(checkpoint)
        self._in_step()
        with self._limited(None):  # Trainer's goes by times or numbers, and counts what is not whole
            super()._save_checkpoint(*args, **kwargs)
        self._in_step()
        if self.args.should_save:
            _trainer_folder.saved(checkpoint)
            best = self.state.best_model_checkpoint
            if limit is not None and limit > 0:
                protected = {FilePath(best)} if best else set()
                _trainer_folder.keep(run, limit, protected, _trainer_folder.is_whole)

    @contextmanager
    def _limited(self, limit: int | None) -> Iterator[None]:
        before = self.args.save_total_limit
        self.args.save_total_limit = limit
        try:
            yield
        finally:
            self.args.save_total_limit = before

    def _in_step(self) -> None:
        # No rank writes into a folder that another is about to put aside, or to count.
        if self.args.world_size > 1:
            self.accelerator.wait_for_everyone()

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        # The arguments are saved as they were given.
        with self._limited(self.args.save_total_limit or self._limit):
            self._save_model(output_dir, state_dict)

    def _save_model(self, output_dir: str | None, state_dict: Any) -> None:
        folder = output_dir or str(self.args.output_dir)
        model: Any = self.accelerator.unwrap_model(self.model, keep_torch_compile=False)
        if state_dict is not None or not self._is_plain(model):
            super()._save(output_dir, state_dict)
            if self.args.should_save:
                unpickle_arguments(self.args, folder)
        elif self.args.should_save:
            save_pretrained(model, folder, max_shard_size=self.max_shard_size, format="safetensors")
            processor = self.processing_class
            if processor is None:
                processor = getattr(self.data_collator, "tokenizer", None)
            if processor is not None:
                processor.save_pretrained(folder)
            write_arguments(self.args, folder)

    def _is_plain(self, model: Any) -> bool:
        """Whether its state is all in this process, and is what transformers saves of it."""
        elsewhere = self.is_deepspeed_enabled or self.is_fsdp_enabled
        elsewhere |= getattr(self, "is_distributed_loading_by_transformers", False)
        adapted = getattr(model, "_hf_peft_config_loaded", False) or getattr(model, "hf_quantizer", None) is not None
        return isinstance(model, PreTrainedModel) and not elsewhere and not adapted

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if self.is_deepspeed_enabled or self.is_fsdp_enabled:
            super()._save_optimizer_and_scheduler(output_dir)
        elif self.args.should_save:
            save_training(self.optimizer, self.lr_scheduler, output_dir)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or not load_training(self.optimizer, self.lr_scheduler, checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _save_rng_state(self, output_dir: str) -> None:
        save_random(self.args, output_dir)
        self._in_step()  # the checkpoint ends with the Trainer's own state, which one process saves

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None or not load_random(self.args, checkpoint):
            super()._load_rng_state(checkpoint)


class ThaliaTrainer(ThaliaTrainerMixin, Trainer):  # type: ignore[misc, unused-ignore]
    """A Trainer whose checkpoints have no pickles, as ThaliaTrainerMixin makes them."""
