#!/usr/bin/env python3
"""Consecutive checkpoints of a training run: what delta and codec figures are measured on.

A transformer learns bytes of text that every Debian machine has (the standard library of Python, and
licenses), with AdamW. Every few steps the model and the optimizer's moments are written as
FOLDER/f32-NN.safetensors, and the weights alone, rounded to bf16, as FOLDER/bf16-NN.safetensors. The
same machine writes the same files each time. torch is installed into .venv-bench on the first run.

With --small-steps the learning rate falls to each of five after the warm-up, and two checkpoints of
bf16 weights are one step apart, as FOLDER/bf16-RATE-{0,1}.safetensors: what is published after each
step. A table says how large a delta of them is, beside two bounds (delta_sizes.py).
"""

import argparse
import pathlib
import sysconfig
import time

import delta_sizes
from race import environment

SEED = 20
SMALL_STEPS = (1e-6, 3e-6, 1e-5, 1e-4, 3e-4)
TEXT_BYTES = 16 << 20


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    add = parser.add_argument
    add("folder", type=pathlib.Path, help="where the checkpoints go")
    add("--checkpoints", type=int, default=10)
    add("--every", type=int, default=10, help="steps between two checkpoints (10)")
    add("--warm-up", type=int, default=40, help="steps before the first checkpoint (40)")
    add("--layers", type=int, default=6)
    add("--width", type=int, default=384)
    add("--context", type=int, default=64)
    add("--batch", type=int, default=4)
    add("--rate", type=float, default=3e-4, help="learning rate (3e-4)")
    add("--threads", type=int, default=0, help="of torch; 0: one a core")
    add("--frozen", type=int, default=0, help="first layers that do not learn, as in fine-tuning")
    add("--small-steps", action="store_true", help="two checkpoints at each of five learning rates")
    default = environment.ROOT / "build-bench"
    add("--build", type=pathlib.Path, default=default, help="build folder, for --small-steps")
    return parser.parse_args()


def text():
    """Python's standard library and the common licenses, as bytes."""
    library = pathlib.Path(sysconfig.get_path("stdlib"))
    pages = [*pathlib.Path("/usr/share/common-licenses").glob("*"), *library.rglob("*.py")]
    found = bytearray()
    for page in sorted(page for page in pages if page.is_file() and "-packages" not in str(page)):
        found += page.read_bytes()
        if len(found) >= TEXT_BYTES:
            break
    return found


def make_model(options):
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(256, options.width)
            self.position = nn.Parameter(torch.zeros(options.context, options.width))
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    options.width,
                    max(1, options.width // 64),
                    4 * options.width,
                    dropout=0,
                    batch_first=True,
                    norm_first=True,
                )
                for _ in range(options.layers)
            )
            self.norm = nn.LayerNorm(options.width)
            self.mask = nn.Transformer.generate_square_subsequent_mask(options.context)
            nn.init.normal_(self.embed.weight, std=0.02)

        def forward(self, tokens):
            hidden = self.embed(tokens) + self.position
            for layer in self.layers:
                hidden = layer(hidden, src_mask=self.mask, is_causal=True)
            return self.norm(hidden) @ self.embed.weight.T

    model = Model()
    for layer in model.layers[: options.frozen]:
        layer.requires_grad_(False)
    return model


def state_of(model, optimizer):
    """Weights, moments and steps by flat names, as safetensors holds them."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    state = {f"model.{name}": tensor.detach() for name, tensor in model.named_parameters()}
    for parameter, moments in optimizer.state.items():
        for key, tensor in moments.items():
            value = tensor.detach().float().reshape(tensor.shape or (1,))
            state[f"optimizer.{names[id(parameter)]}.{key}"] = value
    return state


def save_weights(path, model):
    import safetensors.torch
    import torch

    weights = {name: tensor.detach() for name, tensor in model.named_parameters()}
    halves = {name: tensor.to(torch.bfloat16) for name, tensor in weights.items()}
    safetensors.torch.save_file(halves, path)


def save(options, number, model, optimizer):
    import safetensors.torch

    state = state_of(model, optimizer)
    safetensors.torch.save_file(state, options.folder / f"f32-{number:02}.safetensors")
    save_weights(options.folder / f"bf16-{number:02}.safetensors", model)


def learn(options, data, model, optimizer):
    """A step; the loss."""
    import torch
    from torch import nn

    starts = torch.randint(len(data) - options.context - 1, (options.batch,)).tolist()
    tokens = torch.stack([data[at : at + options.context + 1] for at in starts]).long()
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def start(options):
    """Data, model and optimizer, the same each time."""
    import torch

    torch.manual_seed(SEED)
    if options.threads:
        torch.set_num_threads(options.threads)
    data = torch.frombuffer(text(), dtype=torch.uint8)
    model = make_model(options)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return data, model, torch.optim.AdamW(learning, lr=options.rate)


def take_small_steps(options):
    """Two checkpoints, one step apart, at each learning rate; --every steps at it come before."""
    for rate in SMALL_STEPS:
        data, model, optimizer = start(options)
        for _ in range(options.warm_up):
            learn(options, data, model, optimizer)
        for group in optimizer.param_groups:
            group["lr"] = rate
        for _ in range(options.every):
            learn(options, data, model, optimizer)
        save_weights(delta_sizes.checkpoint(options.folder, rate, 0), model)
        loss = learn(options, data, model, optimizer)
        save_weights(delta_sizes.checkpoint(options.folder, rate, 1), model)
        print(f"learning rate {rate:g}: loss {loss:.3f}", flush=True)


def train(options):
    data, model, optimizer = start(options)
    steps = options.warm_up + (options.checkpoints - 1) * options.every
    began = time.monotonic()
    for step in range(1, steps + 1):
        loss = learn(options, data, model, optimizer)
        number, rest = divmod(step - options.warm_up, options.every)
        if step < options.warm_up or rest:
            continue
        save(options, number, model, optimizer)
        spent = time.monotonic() - began
        print(f"checkpoint {number}: step {step}, loss {loss:.3f}, {spent:.0f} s", flush=True)


def main():
    options = parse()
    if min(options.checkpoints, options.every, options.warm_up) < 1:
        raise SystemExit("--checkpoints, --every and --warm-up: at least 1")
    environment.enter()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.small_steps:
        take_small_steps(options)
        print(delta_sizes.table(options.folder, SMALL_STEPS, options.build / "src/cli/thalia"))
    else:
        train(options)


if __name__ == "__main__":
    main()
