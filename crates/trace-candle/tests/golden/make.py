"""Writes golden.txt: what PyTorch and Hugging Face transformers make of the tiny networks of tests/support.

Usage: python make.py > golden.txt   (needs torch and transformers; any recent version)

Each network gets the same made-up weights as in the tests, reads two sequences and is differentiated. A line holds an
architecture, a name and numbers: the logits, the loss, and for each tensor the norm of its gradient and the product of
its gradient with a wave, which depends on every element and its place.
"""

import math

import numpy as np
import torch
from transformers import (
    GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MambaConfig, MambaForCausalLM,
)

V, D, LAYERS = 7, 8, 2
TOKENS = torch.tensor([[5, 0, 3, 1, 4, 2], [5, 2, 2, 6, 0, 1]])
TARGETS = torch.tensor([[0, 3, 1, 4, 2, 6], [2, 2, 6, 0, 1, 3]])


class Recurrent(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = torch.nn.Embedding(V, D)
        self.rnn = kind(D, D, num_layers=LAYERS, batch_first=True)
        self.norm = torch.nn.RMSNorm(D, eps=1e-6)
        self.lm_head = torch.nn.Linear(D, V, bias=False)

    def forward(self, tokens):
        return self.lm_head(self.norm(self.rnn(self.embedding(tokens))[0]))


def networks():
    yield "gpt2", GPT2LMHeadModel(GPT2Config(
        vocab_size=V, n_positions=10, n_embd=D, n_layer=LAYERS, n_head=2, n_inner=20, layer_norm_epsilon=1e-5,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, activation_function="gelu_new"))
    yield "gru", Recurrent(torch.nn.GRU)
    yield "llama", LlamaForCausalLM(LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=12, num_hidden_layers=LAYERS, num_attention_heads=4,
        num_key_value_heads=2, head_dim=6, rope_theta=100.0, rms_norm_eps=1e-5, tie_word_embeddings=False))
    yield "lstm", Recurrent(torch.nn.LSTM)
    yield "mamba", MambaForCausalLM(MambaConfig(
        vocab_size=V, hidden_size=D, state_size=3, num_hidden_layers=LAYERS, expand=2, conv_kernel=4,
        time_step_rank=2, layer_norm_epsilon=1e-5, use_bias=False, use_conv_bias=True, tie_word_embeddings=True,
        residual_in_fp32=False))


def wave(phase, count):
    return [math.sin(12.9898 * (phase + 1) + 78.233 * (i + 1)) for i in range(count)]


def show(*parts):
    print(*(f"{part:.9e}" if isinstance(part, float) else part for part in parts))


for name, network in networks():
    network = network.double()
    parameters = dict(sorted(network.named_parameters()))  # tied ones once
    for j, (tensor, parameter) in enumerate(parameters.items()):
        values = 0.4 * np.array(wave(j, parameter.numel()))
        if parameter.dim() == 1 and tensor.endswith("weight"):
            values += 1.0
        values = torch.tensor(values.astype(np.float32).astype(np.float64))
        with torch.no_grad():
            parameter.copy_(values.reshape(parameter.shape))
    logits = network(TOKENS)
    logits = getattr(logits, "logits", logits)
    loss = torch.nn.functional.cross_entropy(logits.double().reshape(-1, V), TARGETS.reshape(-1))
    loss.backward()
    show(name, "logits", *logits.detach().flatten().tolist())
    show(name, "loss", loss.item())
    for j, (tensor, parameter) in enumerate(parameters.items()):
        gradient = parameter.grad.flatten()
        product = (gradient * torch.tensor(wave(j + 0.5, gradient.numel()))).sum()
        show(name, tensor, gradient.norm().item(), product.item())
