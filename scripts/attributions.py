#!/usr/bin/env python3
"""Golden attributions: what Captum says of a small checkpoint's predictions.

The comparators `saliency` and `shapley` claim to compute what Captum computes. This script makes the evidence, from a
checkpoint that `scripts/golden.py` wrote:

    python scripts/attributions.py [FILE]

writes FILE, `crates/trace-models/tests/golden/attributions.json` unless given. The Rust tests read it, so Python is
needed only to make it anew. The file is

    checkpoint          folder beside the file, whose ids are all events; nothing is prepended
    versions            of captum, torch and transformers
    tokens              the observed sequence x
    input_x_gradient    for some positions t:
        position            t, counted from 0
        log_probability     log P(x_t | x_0 … x_{t-1})
        norms               for each j < t the L2 norm of embedding(x_j) * gradient of that by embedding(x_j)
    shapley             for some positions t:
        position            t
        players             the positions whose events may be absent, ascending
        baseline            the token that stands where a player is absent; all other positions stay as observed
        observed            log P(x_t) with all players present
        absent              log P(x_t) with all of them absent
        values              the Shapley value of each player for the game log P(x_t); they sum to observed - absent

The norms are those of captum.attr.InputXGradient, the values those of captum.attr.ShapleyValues, which goes through all
orders of the players and so is exact. The script checks them: a row's products must sum to the slope of stretching its
embedding, the values must be those of the definition, and captum.attr.ShapleyValueSampling must come as close as its
number of samples lets it. The arithmetic is float32 on one thread; numbers are rounded to 7 significant digits.

Needs captum 0.7 or newer, and what golden.py needs.
"""

import argparse
import itertools
import json
from pathlib import Path

import captum
import torch
import transformers
from captum.attr import InputXGradient, ShapleyValues, ShapleyValueSampling
from golden import GOLDEN, load
from transformers.utils import logging

CHECKPOINT = "llama-gqa"
# The first position with a past, short and long ones.
EXPLAINED = (1, 2, 6, 11)
# (position, number of players, baseline). The last baseline is also the token of one of the players.
GAMES = ((4, 4, 13), (8, 5, 2), (11, 5, 13), (11, 5, 22))
SAMPLES = 400
# How many standard errors sampling may be off.
ERRORS = 5


def log_probabilities(model, tokens=None, embedded=None):
    """The log-distribution after the last token of each sequence of a batch."""
    return model(input_ids=tokens, inputs_embeds=embedded).logits[:, -1].log_softmax(-1)


def saliency(model, tokens, position):
    def forward(embedded):
        return log_probabilities(model, embedded=embedded)

    target = tokens[position]
    embedded = model.get_input_embeddings()(torch.tensor([tokens[:position]])).detach().requires_grad_()
    products = InputXGradient(forward).attribute(embedded, target=target)[0]
    with torch.no_grad():
        value = forward(embedded)[0, target].item()
        for place in range(position):
            # The products along a row sum to the slope of making its embedding longer.
            stretch = torch.ones(1, position, 1)
            stretch[0, place] = 1.01
            longer = forward(embedded * stretch)[0, target]
            stretch[0, place] = 0.99
            slope = ((longer - forward(embedded * stretch)[0, target]) / 0.02).item()
            difference = abs(slope - products[place].sum().item())
            assert difference < 2e-3, f"position {position}: input × gradient is {difference} off the slope"
    return {"position": position, "log_probability": value, "norms": products.norm(dim=-1).tolist()}


def contributions(value, count):
    """What each player adds to the players before it, in every order of them: a row a player, a column an order."""
    coalitions = list(itertools.product((False, True), repeat=count))
    worth = dict(zip(coalitions, value(torch.tensor(coalitions)).double().tolist()))
    added = [[] for _ in range(count)]
    for order in itertools.permutations(range(count)):
        present = [False] * count
        for player in order:
            before = worth[tuple(present)]
            present[player] = True
            added[player].append(worth[tuple(present)] - before)
    return torch.tensor(added, dtype=torch.float64)


def shapley(model, tokens, position, count, baseline):
    players = list(range(position - count, position))
    past = torch.tensor([tokens[: position - count]], dtype=torch.long)  # may be empty

    def forward(present):
        whole = torch.cat([past.expand(len(present), -1), present], dim=1)
        return log_probabilities(model, tokens=whole)

    target = tokens[position]
    observed, absent = torch.tensor([tokens[position - count : position]]), torch.full((1, count), baseline)
    question = {"baselines": baseline, "target": target, "perturbations_per_eval": count}
    with torch.no_grad():
        values = ShapleyValues(forward).attribute(observed, **question)[0]
        torch.manual_seed(1)
        sampled = ShapleyValueSampling(forward).attribute(observed, n_samples=SAMPLES, **question)[0]
        ends = [forward(tensor)[0, target].item() for tensor in (observed, absent)]
        added = contributions(lambda present: forward(torch.where(present, observed, absent))[:, target], count)
    left = abs(values.sum().item() - (ends[0] - ends[1]))
    assert left < 1e-5, f"position {position}: the values miss the whole by {left}"
    wrong = (values - added.mean(dim=1)).abs().max().item()
    assert wrong < 1e-5, f"position {position}: the values are {wrong} off the definition"
    # A player that adds the same in every order is sampled without error, but for rounding.
    errors = added.std(dim=1) / SAMPLES**0.5 + 1e-6
    off = ((sampled - values).abs() / errors).max().item()
    assert off < ERRORS, f"position {position}: sampling is {off} standard errors off"
    print(f"position {position}: {wrong:.0e} off the definition; sampling {off:.1f} standard errors off")
    return {
        "position": position,
        "players": players,
        "baseline": baseline,
        "observed": ends[0],
        "absent": ends[1],
        "values": values.tolist(),
    }


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value


def write(path):
    model = load(GOLDEN / CHECKPOINT)
    tokens = json.loads((GOLDEN / CHECKPOINT / "expected.json").read_text())["tokens"][0]
    versions = {"captum": captum.__version__, "torch": torch.__version__, "transformers": transformers.__version__}
    fields = {
        "checkpoint": CHECKPOINT,
        "versions": versions,
        "tokens": tokens,
        "input_x_gradient": [saliency(model, tokens, position) for position in EXPLAINED],
        "shapley": [shapley(model, tokens, *game) for game in GAMES],
    }

    def text(value):
        # One line an entry keeps the differences between two versions of the file readable.
        if isinstance(value, list) and isinstance(value[0], dict):
            return "[\n" + ",\n".join("  " + json.dumps(rounded(one)) for one in value) + "\n ]"
        return json.dumps(value)

    path.write_text("{\n" + ",\n".join(f' "{name}": {text(value)}' for name, value in fields.items()) + "\n}\n")
    print(f"{path.stat().st_size} bytes in {path}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("file", type=Path, nargs="?", default=GOLDEN / "attributions.json")
    arguments = parser.parse_args()

    logging.disable_progress_bar()
    # One thread adds numbers in one order.
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    write(arguments.file)


if __name__ == "__main__":
    main()
