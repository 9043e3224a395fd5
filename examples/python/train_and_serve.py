"""A transformer that trains on one core and answers requests on the other while its weights change.

    train_and_serve.py RUN [--steps 40]

The trainer publishes its bf16 weights after every step. The server follows them, and changes the model that it
answers with under a lock, so that each answer is that of one version. Run it again, and the training goes on.
"""

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import thalia_checkpoint as thalia
import torch
from thalia_checkpoint import store

PROMPTS = ("import ", "def main", "class Model(", "# The server")
CONTEXT, WIDTH, LAYERS = 32, 64, 2
RUN = {
    "deltas": {"policy": "every", "full_every": 8},
    "phases": [{"name": "train", "retention": {"keep_last": 2}}],
}


class Model(torch.nn.Module):
    """Learns the bytes of a text. The output layer is the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(256, WIDTH)
        self.place = torch.nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = torch.nn.Linear(WIDTH, 256, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> Any:
        length = tokens.shape[1]
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        return self.head(self.layers(self.embed(tokens) + self.place[:length], mask=later))


def on_core(number: int) -> None:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
    torch.set_num_threads(1)


@torch.no_grad()
def answer(model: Model, prompt: str) -> dict[str, str]:
    """The next eight bytes, and the digest of all that the model said on the way."""
    tokens = list(prompt.encode()[-CONTEXT // 2 :])
    said = hashlib.sha256()
    for _ in range(8):
        scores = model(torch.tensor([tokens]))[0, -1]
        said.update(scores.float().numpy().tobytes())
        tokens.append(int(scores.argmax()))
    return {"text": bytes(tokens).decode(errors="replace"), "digest": said.hexdigest()}


def train(folder: Path, steps: int) -> None:
    """Publishes each step; `answers.jsonl` says what the model of each answers."""
    on_core(0)
    torch.manual_seed(1)
    text = torch.frombuffer(bytearray(Path(__file__).read_bytes()), dtype=torch.uint8).long()
    model, published = Model(), Model().to(torch.bfloat16).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with thalia.Publisher(folder) as publisher, (folder.parent / "answers.jsonl").open("a") as answers:
        first = publisher.newest or 0
        for step in range(first + 1, first + steps + 1):
            starts = torch.randint(len(text) - CONTEXT - 1, (8,)).tolist()
            batch = torch.stack([text[at : at + CONTEXT + 1] for at in starts])
            loss = torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            published.load_state_dict(model.state_dict())
            said = {prompt: answer(published, prompt) for prompt in PROMPTS}
            answers.write(json.dumps({"step": step, "answers": said}) + "\n")
            answers.flush()
            publisher.publish(published, step=step)


class Server:
    """Answers with the newest weights. One lock keeps the answers and the changes apart."""

    def __init__(self, folder: Path) -> None:
        self.model = Model().to(torch.bfloat16).eval()
        self.step = 0
        self.lock = threading.Lock()
        self.follower = thalia.Follower(folder)
        self.follower.add_module(self.model)
        self.following = threading.Thread(target=self.follow)

    def follow(self) -> None:
        while update := self.follower.prepare():  # reads and verifies; the model is not touched
            with self.lock:
                self.follower.apply()  # copies what changed
                self.step = update.step

    def reply(self, prompt: str) -> dict[str, Any]:
        with self.lock:
            return {"step": self.step, **answer(self.model, prompt)}

    def run(self) -> None:
        first = self.follower.wait()
        assert first
        self.step = first.step
        self.following.start()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
                body = json.dumps(server.reply(asked)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
            print(http.server_port, flush=True)
            http.serve_forever()


def ask(port: int, prompt: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}", prompt.encode(), timeout=60) as reply:
        found: dict[str, Any] = json.load(reply)
    return found


def requests(port: int, trainer: "subprocess.Popen[str]", last: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Asks until the training is over and its last version answers."""
    for prompt in itertools.cycle(PROMPTS):
        reply = ask(port, prompt)
        yield prompt, reply
        if trainer.poll() is not None and (reply["step"] >= last or trainer.returncode):
            return


def check(folder: Path, replies: list[tuple[str, dict[str, Any]]]) -> None:
    """Each reply is what the trainer's model of that version answers, and versions only increase."""
    lines = (folder.parent / "answers.jsonl").read_text().splitlines()
    said = {line["step"]: line["answers"] for line in map(json.loads, lines)}
    steps = [reply["step"] for _, reply in replies]
    if steps != sorted(steps):
        raise SystemExit("an older version answered after a newer one")
    for prompt, reply in replies:
        if {**said[reply["step"]][prompt], "step": reply["step"]} != reply:
            raise SystemExit(f"step {reply['step']} answers {reply}, and not {said[reply['step']][prompt]}")
    print(f"{len(replies)} requests, answered by {len(set(steps))} versions of {len(said)}, each as its version does")


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains on one core and serves on the other.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--role", choices=("train", "serve", "all"), default="all", help=argparse.SUPPRESS)
    options = parser.parse_args()
    folder: Path = options.run.absolute()
    if options.role == "train":
        return train(folder, options.steps)
    if options.role == "serve":
        on_core(1)
        return Server(folder).run()
    if not folder.exists():
        store.create_run(folder, RUN)
    latest = store.Run(folder).latest()
    last = (latest.step if latest else 0) + options.steps
    command = [sys.executable, __file__, str(folder), "--steps", str(options.steps), "--role"]
    with (
        subprocess.Popen([*command, "serve"], stdout=subprocess.PIPE, text=True) as server,
        subprocess.Popen([*command, "train"], text=True) as trainer,
    ):
        try:
            assert server.stdout
            replies = list(requests(int(server.stdout.readline()), trainer, last))
        finally:
            server.terminate()
            trainer.terminate()
    check(folder, replies)


if __name__ == "__main__":
    main()
