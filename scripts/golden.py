#!/usr/bin/env python3
"""Golden files: small checkpoints and the logits that PyTorch computes from them.

The backbones of `trace-models` claim to compute what Hugging Face Transformers computes. This script makes the
evidence, in both directions:

    python scripts/golden.py write [FOLDER]
        Writes the checkpoints below and, beside each, `expected.json` with the logits of two token sequences. FOLDER
        is `crates/trace-models/tests/golden` unless given; every checkpoint is a folder in it. The Rust tests read
        these files, so Python is needed only to make them anew.

    python scripts/golden.py check MODEL_FOLDER LOGITS.json
        Reads a folder that the Rust program wrote and saves the logits PyTorch finds in it, in the form of
        `expected.json`, for Rust to compare its own with. Any tensor that is missing, left over or of another shape is
        an error: Transformers would fill it with random numbers and carry on.

`expected.json` is {"tokens": [[id, ...], ...], "logits": [[[number, ...], ...], ...]}: for each sequence one row a
position, one number a token of the vocabulary; the row of position t depends on tokens 0 to t and predicts token t + 1.
No begin token is added. Of a masked model, whose row of position t depends on all tokens and names the one at t, the
file also has "attention": for each sequence the weights of the deepest layer averaged over heads, a row for each position
that attends. The arithmetic is float32 on one thread, whatever type the weights are stored in; numbers are
rounded to 7 significant digits.

What `write` makes:

    llama-tied      LLaMA whose head shares the embedding
    llama-gqa       grouped-query attention, a head size other than hidden/heads, another RoPE base, several files
    llama-v4        its config.json spelt as Transformers 4 spelt it (most published checkpoints do)
    llama-bf16      weights stored in bfloat16
    gpt2            GPT-2
    gpt2-f16        weights stored in float16
    mamba           Mamba with the settings of the published models: tied head, biased convolution
    mamba-untied    head of its own, biased projections, convolution without bias
    gru, lstm       this project's own recurrent checkpoints, for which Transformers has no class
    bert            BERT with its masked-language head: the published settings, hence two token types

The folders `trained-BACKBONE` beside them are the other direction. They were made with

    trace simulate scm --vocabulary 20 --memory 2 --length 16 --sequences 60 --truth none --out process
    trace train process/events.jsonl --backbone BACKBONE --width 16 --layers 2 --batch 8 --steps 40 --out trained-BACKBONE
    python scripts/golden.py check trained-BACKBONE trained-BACKBONE/expected.json

with --steps 400 for bert, which has learned nothing to look at after 40.

Needs torch 2.4, transformers 4.56 and safetensors, or newer; the CPU builds will do. The same versions write the same
bytes. The versions used last are in each config.json (`transformers_version`).
"""

import argparse
import json
import random
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoModelForCausalLM,
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
)
from transformers.utils import logging

GOLDEN = Path(__file__).resolve().parent.parent / "crates" / "trace-models" / "tests" / "golden"

VOCABULARY = 23
# Two lengths, so that no reader can rely on a rectangular batch.
LENGTHS = (12, 9)
# Loading a checkpoint again must give the same numbers, but for the rounding to 7 digits and another order of additions
# (a model just made computes attention with a fused kernel, a loaded one step by step).
TOLERANCE = 1e-5


# ---------------------------------------------------------------------------------------------------------------------
# The recurrent models of this project
# ---------------------------------------------------------------------------------------------------------------------


class Recurrent(nn.Module):
    """Embedding, GRU or LSTM, RMS norm, head. The attribute names are the tensor names of the checkpoint."""

    CELLS = {"trace-gru": nn.GRU, "trace-lstm": nn.LSTM}

    def __init__(self, config):
        super().__init__()
        size, vocabulary = config["hidden_size"], config["vocab_size"]
        self.embedding = nn.Embedding(vocabulary, size)
        cell = self.CELLS[config["model_type"]]
        self.rnn = cell(size, size, num_layers=config["num_hidden_layers"], batch_first=True)
        self.norm = nn.RMSNorm(size, eps=1e-6)
        self.lm_head = nn.Linear(size, vocabulary, bias=False)
        if config["tie_word_embeddings"]:
            self.lm_head.weight = self.embedding.weight

    def forward(self, tokens):
        states, _ = self.rnn(self.embedding(tokens))
        return self.lm_head(self.norm(states))


def save_recurrent(model, config, folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})


def load_recurrent(folder, config):
    model = Recurrent(config)
    tensors = {name: tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()}
    if config["tie_word_embeddings"]:
        # The head is the embedding; a file need not hold it twice, but may.
        tensors.setdefault("lm_head.weight", tensors["embedding.weight"])
    model.load_state_dict(tensors, strict=True)
    return model.eval()


# ---------------------------------------------------------------------------------------------------------------------
# Weights and logits
# ---------------------------------------------------------------------------------------------------------------------


def fill(model, seed):
    """Gives every parameter random numbers that matter.

    Fresh models have norm weights of 1 and biases of 0, with which a reader that forgets them passes. And their small
    matrices make flat logits, with which a reader that gets attention wrong nearly passes.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            last = name.rsplit(".", 1)[-1]
            is_norm = last == "weight" and parameter.dim() == 1
            if last in ("A_log", "D") or is_norm:
                # Around what a fresh model has: 1 for norms and D, log(1), log(2), … for A_log.
                parameter.add_(0.2 * noise)
            else:
                parameter.copy_(0.3 * noise)
    return model.eval()


def load(folder):
    """Reads any of the checkpoints, as float32."""
    config = json.loads((folder / "config.json").read_text())
    if config["model_type"] in Recurrent.CELLS:
        return load_recurrent(folder, config)
    kind = BertForMaskedLM if config["model_type"] == "bert" else AutoModelForCausalLM
    # Converting after loading would also round the RoPE frequencies to the stored type; asking for the type does not.
    model, info = kind.from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation="eager",
        local_files_only=True,
        output_loading_info=True,
    )
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[problem]:
            raise SystemExit(f"{folder}: {problem.replace('_', ' ')}: {sorted(map(str, info[problem]))}")
    return model.eval()


def tokens_for(vocabulary, longest=None):
    """Two fixed sequences. Python's generator gives the same numbers in every version, that of torch need not."""
    source = random.Random(17)
    lengths = [min(length, longest or length) for length in LENGTHS]
    tokens = [[source.randrange(vocabulary) for _ in range(length)] for length in lengths]
    # Both ends of the embedding table are where an offset by one shows.
    tokens[0][1], tokens[0][-2] = 0, vocabulary - 1
    return tokens


def logits_of(model, tokens):
    """One sequence at a time: no padding, hence no attention mask to get wrong."""
    rows = []
    with torch.inference_mode():
        for sequence in tokens:
            output = model(torch.tensor([sequence]))
            rows.append(output if isinstance(output, torch.Tensor) else output.logits)
    return [row[0] for row in rows]


def attention_of(model, tokens):
    """The deepest layer's attention weights of a masked model, averaged over heads; nothing of any other model."""
    if not isinstance(model, BertForMaskedLM):
        return None
    with torch.inference_mode():
        outputs = [model(torch.tensor([sequence]), output_attentions=True) for sequence in tokens]
    return [output.attentions[-1][0].mean(dim=0) for output in outputs]


def write_expected(path, tokens, logits, attention=None):
    def rounded(tensor):
        return [[float(f"{value:.7g}") for value in row] for row in tensor.tolist()]

    # One line a row keeps the differences between two versions of the file readable.
    def block(tensors):
        sequences = []
        for tensor in tensors:
            assert torch.isfinite(tensor).all(), f"{path}: not all numbers are finite"
            sequences.append("  [\n" + ",\n".join("   " + json.dumps(row) for row in rounded(tensor)) + "\n  ]")
        return "[\n" + ",\n".join(sequences) + "\n ]"

    text = f'{{\n "tokens": {json.dumps(tokens)},\n "logits": {block(logits)}'
    if attention is not None:
        text += f',\n "attention": {block(attention)}'
    path.write_text(text + "\n}\n")


# ---------------------------------------------------------------------------------------------------------------------
# The checkpoints
# ---------------------------------------------------------------------------------------------------------------------


def llama(**changes):
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        **rope(10000.0),
    }
    return LlamaForCausalLM(LlamaConfig(**{**settings, **changes}))


def rope(theta):
    """The RoPE base as this version of Transformers wants it: version 5 moved it into a table of its own."""
    if hasattr(LlamaConfig(), "rope_parameters"):
        return {"rope_parameters": {"rope_type": "default", "rope_theta": theta}}
    return {"rope_theta": theta}


def gpt2():
    # The default begin and end tokens are those of the published vocabulary, far beyond this one.
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=32,
            n_embd=16,
            n_layer=2,
            n_head=4,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def mamba(**changes):
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "state_size": 8,
        "num_hidden_layers": 2,
        "conv_kernel": 4,
        "expand": 2,
        "time_step_rank": 3,
        "use_conv_bias": True,
        "use_bias": False,
        "tie_word_embeddings": True,
    }
    return MambaForCausalLM(MambaConfig(**{**settings, **changes}))


def bert():
    return BertForMaskedLM(
        BertConfig(
            vocab_size=VOCABULARY,
            hidden_size=16,
            intermediate_size=24,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=32,
            attn_implementation="eager",
        )
    )


def recurrent(kind):
    config = {
        "model_type": kind,
        "vocab_size": VOCABULARY,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "tie_word_embeddings": False,
    }
    return Recurrent(config), config


def spell_as_version_4(folder):
    """Rewrites config.json of a LLaMA folder in the older spelling, if it is in the newer one."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    parameters = config.pop("rope_parameters", None)
    if parameters is not None:
        config["rope_theta"] = parameters["rope_theta"]
        config["rope_scaling"] = None
    if "dtype" in config:
        config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.40.0"
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def write(target):
    made = []

    def finish(name, model, check):
        folder = target / name
        tokens = tokens_for(VOCABULARY)
        loaded = load(folder)
        logits = logits_of(loaded, tokens)
        write_expected(folder / "expected.json", tokens, logits, attention_of(loaded, tokens))

        # What was saved is what was made: the model before saving gives the same numbers (where it was not rounded).
        difference = max((a - b).abs().max().item() for a, b in zip(logits, logits_of(model, tokens)))
        if check:
            assert difference <= TOLERANCE, f"{name}: logits differ by {difference} from those before saving"
        # And the file says so too, read by itself.
        stored = json.loads((folder / "expected.json").read_text())
        again = logits_of(load(folder), stored["tokens"])
        reread = max((a - torch.tensor(b)).abs().max().item() for a, b in zip(again, stored["logits"]))
        assert reread <= TOLERANCE, f"{name}: expected.json is {reread} away from its checkpoint"
        # How far float32 is from the truth: a comparison need not be, and cannot be, finer than this.
        exact = logits_of(loaded.double(), tokens)
        rounding = max((a - b.float()).abs().max().item() for a, b in zip(logits, exact))
        spread = torch.cat(logits).std().item()
        size = sum(file.stat().st_size for file in folder.iterdir())
        made.append(name)
        print(f"{name:13} {size:6} bytes, logits spread {spread:.2f}, float32 rounding {rounding:.1e}")

    def fresh(name):
        shutil.rmtree(target / name, ignore_errors=True)
        return target / name

    def pretrained(name, model, seed, stored=None, **options):
        folder = fresh(name)
        fill(model, seed)
        saved = model if stored is None else model.to(stored)
        saved.save_pretrained(folder, **options)
        # Settings for drawing text; nothing here draws.
        (folder / "generation_config.json").unlink(missing_ok=True)
        if name == "llama-v4":
            spell_as_version_4(folder)
        finish(name, model.float(), check=stored is None)

    pretrained("llama-tied", llama(tie_word_embeddings=True), seed=1)
    pretrained(
        "llama-gqa",
        llama(
            hidden_size=24,
            intermediate_size=32,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=8,
            **rope(500.0),
        ),
        seed=2,
        max_shard_size="12KB",
    )
    pretrained("llama-v4", llama(**rope(500.0)), seed=3)
    pretrained("llama-bf16", llama(), seed=4, stored=torch.bfloat16)
    pretrained("gpt2", gpt2(), seed=5)
    pretrained("gpt2-f16", gpt2(), seed=6, stored=torch.float16)
    pretrained("mamba", mamba(), seed=7)
    pretrained("mamba-untied", mamba(tie_word_embeddings=False, use_bias=True, use_conv_bias=False), seed=8)
    for name, kind, seed in (("gru", "trace-gru", 9), ("lstm", "trace-lstm", 10)):
        model, config = recurrent(kind)
        fill(model, seed)
        save_recurrent(model, config, fresh(name))
        finish(name, model, check=True)
    pretrained("bert", bert(), seed=11)
    print(f"{len(made)} checkpoints in {target}")


def check(folder, output):
    config = json.loads((folder / "config.json").read_text())
    longest = config.get("max_position_embeddings") or config.get("n_positions")
    tokens = tokens_for(config["vocab_size"], longest)
    if config["model_type"] == "bert":
        # The last token is the mask, which is no event: the second sequence is of events alone.
        tokens[1] = [token % (config["vocab_size"] - 1) for token in tokens[1]]
    model = load(folder)
    write_expected(output, tokens, logits_of(model, tokens), attention_of(model, tokens))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    writing = modes.add_parser("write", help="write the checkpoints and their logits")
    writing.add_argument("folder", type=Path, nargs="?", default=GOLDEN)
    checking = modes.add_parser("check", help="write the logits of a folder the Rust program wrote")
    checking.add_argument("model", type=Path)
    checking.add_argument("logits", type=Path)
    arguments = parser.parse_args()

    logging.disable_progress_bar()
    # One thread adds numbers in one order.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if arguments.mode == "write":
        write(arguments.folder)
    else:
        check(arguments.model, arguments.logits)


if __name__ == "__main__":
    main()
