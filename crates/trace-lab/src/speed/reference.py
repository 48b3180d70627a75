"""The other side of `trace-lab speed`: PyTorch, Transformers and seq2cause, asked over a pipe.

One JSON object per line comes in on standard input, one JSON object per line goes out on standard output; whatever else
anything here prints goes to standard error. A command that fails answers {"error": "..."} and the next is awaited.
The program ends with `quit` or with the end of its input.

    {"do": "hello", "threads": 2}
        -> {"python", "torch", "transformers", "seq2cause": versions or null, "mkldnn": bool, "threads": n}
        Should be first: the number of threads can only be set before any work is done.

    {"do": "load", "folder": PATH}
        -> {"parameters": n}
        A causal language model as float32 with fused attention; a weight tied to another counts once.

    {"do": "train", "batch": 64, "length": 64, "steps": K, "optimizer": "default" | "foreach" | "fused"}
        -> {"seconds", "tokens_per_second", "each": [seconds of a step, ...], "elsewhere", "optimizer", "first_loss",
            "last_loss"}
        K steps of AdamW on random tokens after one that is not timed; the weights are then put back. "default" is what
        torch chooses by itself, on a CPU a plain loop over the parameters.

    {"do": "infer", "batch": 64, "length": 64, "repeats": K}
        -> {"seconds", "tokens_per_second", "each", "elsewhere"}
        The logits at every position of a batch, K times after once that is not timed.

    {"do": "discover", "events": [id, ...], "particles": N, "context": 1, "seed": 0, "cache": true}
        -> {"seconds", "elsewhere", "peak_bytes", "before_bytes", "matrix": [[cause, effect, strength], ...],
            "settings": {...}}
        One sequence through seq2cause, see `discover`. `peak_bytes` is the most this process has held since it
        started, so a measurement of memory wants a process that has done nothing but `hello` and `load`.

    {"do": "quit"}

`elsewhere` is the CPU time in seconds that other processes used during the measurement, or null where that cannot be
told. Look at it before believing a time: with two threads on two cores, a neighbor that kept about one core busy was
seen to make a training step six times slower, not twice (its own CPU time grew with it, as if threads spun waiting).

Needs torch, transformers 4.56 or newer, and seq2cause for `discover`.
"""

import json
import math
import os
import platform
import resource
import sys
import time
import traceback

# Nothing is ever fetched: a folder that is not there is an error, not a name to look up.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch

# What one seed draws here is the same in every run; the numbers themselves mean nothing.
SEED = 20240607


class Server:
    def __init__(self):
        self.model = None

    def hello(self, command):
        threads = command.get("threads")
        if threads is not None:
            torch.set_num_threads(threads)
            torch.set_num_interop_threads(1)
        return {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": version("transformers"),
            "seq2cause": version("seq2cause"),
            "mkldnn": torch.backends.mkldnn.is_available(),
            "threads": torch.get_num_threads(),
        }

    def load(self, command):
        # Imported here, so that a mistake in the settings shows before seconds of importing.
        from transformers import AutoModelForCausalLM

        self.model = AutoModelForCausalLM.from_pretrained(
            command["folder"],
            dtype=torch.float32,
            attn_implementation="sdpa",
            local_files_only=True,
        ).eval()
        return {"parameters": sum(parameter.numel() for parameter in self.model.parameters())}

    def train(self, command):
        model = self.loaded()
        batch, length, steps = command["batch"], command["length"], command["steps"]
        kind = command.get("optimizer", "default")
        options = {"default": {}, "foreach": {"foreach": True}, "fused": {"fused": True}}[kind]
        batches = self.random_tokens(steps + 1, batch, length)
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}

        parameters = list(model.parameters())
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, **options)
        losses = []

        def step(tokens):
            # Token t + 1 is the target of position t. Leaving the last position out by its target, not by cutting the
            # logits, saves a copy of the largest tensor of all.
            targets = torch.full_like(tokens, -100)
            targets[:, :-1] = tokens[:, 1:]
            logits = model(input_ids=tokens, use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            losses.append(loss.detach())

        model.train()
        try:
            step(batches[0])
            watch = Watch()
            for tokens in batches[1:]:
                step(tokens)
                watch.lap()
            times = watch.stop()
        finally:
            model.eval()
            model.load_state_dict(weights)
            optimizer.zero_grad(set_to_none=True)
        return {
            **times,
            "tokens_per_second": steps * batch * length / times["seconds"],
            "optimizer": kind,
            "first_loss": losses[0].item(),
            "last_loss": losses[-1].item(),
        }

    def infer(self, command):
        model = self.loaded()
        batch, length, repeats = command["batch"], command["length"], command["repeats"]
        (tokens,) = self.random_tokens(1, batch, length)
        with torch.inference_mode():
            model(input_ids=tokens, use_cache=False)
            watch = Watch()
            for _ in range(repeats):
                model(input_ids=tokens, use_cache=False)
                watch.lap()
            times = watch.stop()
        return {**times, "tokens_per_second": repeats * batch * length / times["seconds"]}

    def discover(self, command):
        """The atomic discovery of seq2cause, called as its README calls it.

        Positions. `compute_cmi_matrix` keeps the first `context_len` events out of the test and numbers what follows
        from 0, so that its cell [j, q] is cause `context_len + j` and effect `context_len + q` of the sequence. The
        answer is in positions of the sequence. The smallest context that works is 1 (the first event would need a
        prediction from nothing; with 0 the package fails), so no pair has position 0 as its cause. Nothing is put
        before the sequence: the first of `events` is the first token the model sees.

        The number. With p the probability of the observed effect in the observed sequence and p_n the same with the
        cause replaced by the n-th of N tokens drawn uniformly with replacement, the cell is the divergence of
        Bernoulli(p) from Bernoulli(mean of p_n): one divergence of a mean, not a mean of divergences.

        Memory. All (L - context) * N edited sequences go through the model in one batch, and the package has no
        setting to split it. Its `max_pairs` only refuses long sequences; here it is lifted. A model that keeps keys
        and values by default does so here too, as in the README; {"cache": false} turns that off.
        """
        from seq2cause.adapters import HFModelAdapter
        from seq2cause.diagnostics import compute_cmi_matrix

        model = self.loaded()
        events = torch.tensor(command["events"], dtype=torch.long)
        particles, context = command["particles"], command.get("context", 1)
        if not 1 <= context < len(events):
            raise ValueError("the context must be at least 1 and shorter than the sequence")
        seed = command.get("seed", 0)
        before = peak_bytes()

        kept = model.config.use_cache
        model.config.use_cache = bool(kept and command.get("cache", True))
        try:
            adapter = HFModelAdapter(model, vocab_size=model.config.vocab_size)
            # The package draws from the global generator.
            torch.manual_seed(seed)
            watch = Watch()
            cells = compute_cmi_matrix(
                adapter, events, context_len=context, n_particles=particles, strategy="atomic", max_pairs=None
            )
            times = watch.stop()
            peak = peak_bytes()
            settings = {
                "strategy": "atomic",
                "context": context,
                "particles": particles,
                "max_pairs": None,
                "proposal": "uniform, with replacement",
                "cache": model.config.use_cache,
                "seed": seed,
                "threads": torch.get_num_threads(),
            }
        finally:
            model.config.use_cache = kept
        rows = cells.tolist()
        matrix = [
            # JSON has no word for what is not finite (a probability that rounded to 1 can bring it about).
            [context + cause, context + effect, rows[cause][effect] if math.isfinite(rows[cause][effect]) else None]
            for cause in range(len(rows))
            for effect in range(cause + 1, len(rows))
        ]
        return {
            "seconds": times["seconds"],
            "elsewhere": times["elsewhere"],
            "peak_bytes": peak,
            "before_bytes": before,
            "matrix": matrix,
            "settings": settings,
        }

    def loaded(self):
        if self.model is None:
            raise ValueError("no model is loaded")
        return self.model

    def random_tokens(self, count, batch, length):
        generator = torch.Generator().manual_seed(SEED)
        shape = (count, batch, length)
        return torch.randint(self.model.config.vocab_size, shape, generator=generator).unbind()


class Watch:
    """Times a piece of work, its laps, and what the rest of the machine did meanwhile."""

    def __init__(self):
        self.each = []
        self.busy, self.own = busy_seconds(), own_seconds()
        self.started = self.last = time.perf_counter()

    def lap(self):
        now = time.perf_counter()
        self.each.append(now - self.last)
        self.last = now

    def stop(self):
        seconds = time.perf_counter() - self.started
        busy, own = busy_seconds(), own_seconds()
        elsewhere = None
        if busy is not None and self.busy is not None:
            # The machine counts in hundredths of a second, so that very little can come out below nothing.
            elsewhere = max(0.0, (busy - self.busy) - (own - self.own))
        return {"seconds": seconds, "each": self.each, "elsewhere": elsewhere}


def own_seconds():
    """The CPU time of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def busy_seconds():
    """The CPU time of all processes of the machine, where Linux tells it."""
    try:
        with open("/proc/stat", encoding="ascii") as stat:
            user, nice, system, _idle, _waiting, interrupts, soft_interrupts = map(int, stat.readline().split()[1:8])
    except (OSError, ValueError):
        return None
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def version(package):
    """The version of an installed package, without importing it: imports take memory that is being measured."""
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def peak_bytes():
    """The most memory this process has held so far.

    Linux keeps two such figures. The one of `getrusage` survives `exec` and so starts from the memory of the program
    that started this one, which may be larger than all that happens here; `VmHWM` starts anew.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Bytes on macOS, kilobytes elsewhere.
    return peak if sys.platform == "darwin" else peak * 1024


def main():
    # The pipe is for answers alone: from here on file descriptor 1 is standard error, for libraries in C as well.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    server = Server()
    commands = {
        "hello": server.hello,
        "load": server.load,
        "train": server.train,
        "infer": server.infer,
        "discover": server.discover,
    }
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            command = json.loads(line)
            if command["do"] == "quit":
                break
            answer = json.dumps(commands[command["do"]](command), allow_nan=False)
        except Exception as error:  # whatever it is, the other side waits for a line
            traceback.print_exc()
            answer = json.dumps({"error": f"{type(error).__name__}: {error}"})
        answers.write(answer + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
