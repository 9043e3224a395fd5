"""The state of a training run: a small transformer on bytes of text, model and AdamW moments."""

import pathlib

STEPS, BATCH, CONTEXT, SEED = 20, 4, 64, 20
PARAMETERS_A_SQUARE = 12  # a layer of width w has about this times w * w
STATE_BYTES = 12  # a parameter: its value and two moments, f32


def dimensions(size):
    """(width, layers) of a model whose state has about `size` bytes."""
    width = 1024 if size >= 1 << 30 else 256 if size >= 1 << 26 else 64
    return width, max(1, round(size / (PARAMETERS_A_SQUARE * width * width * STATE_BYTES)))


def text():
    """The pages of this repository, as bytes."""
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    return b"".join(page.read_bytes() for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]))


def train(path, size, say):
    """Trains for STEPS steps, the same ones each time, and writes the state as safetensors."""
    import safetensors.torch
    import torch
    from torch import nn

    torch.manual_seed(SEED)
    width, layers = dimensions(size)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(256, width)
            self.position = nn.Parameter(torch.zeros(CONTEXT, width))
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0, batch_first=True, norm_first=True)
                for _ in range(layers)
            )
            self.mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)

        def forward(self, tokens):
            hidden = self.embed(tokens) + self.position
            for layer in self.layers:
                hidden = layer(hidden, src_mask=self.mask, is_causal=True)
            return hidden @ self.embed.weight.T

    data = torch.frombuffer(bytearray(text()), dtype=torch.uint8).long()
    model = Model()
    nn.init.normal_(model.embed.weight, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for step in range(STEPS):
        starts = torch.randint(len(data) - CONTEXT - 1, (BATCH,)).tolist()
        tokens = torch.stack([data[start : start + CONTEXT + 1] for start in starts])
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        say(f"training: step {step + 1} of {STEPS}: loss {loss.item():.3f}")

    state = {f"model.{name}": tensor.detach() for name, tensor in model.named_parameters()}
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    for parameter, moments in optimizer.state.items():
        for key, tensor in moments.items():
            state[f"optimizer.{names[id(parameter)]}.{key}"] = tensor.detach().reshape(-1)
    safetensors.torch.save_file(state, path)
