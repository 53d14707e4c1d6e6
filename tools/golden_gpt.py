"""A small GPT-2 in plain PyTorch; see export_reference.py."""
import math

import torch
import torch.nn.functional as F

from golden_file import ADAMW, BATCH, LENGTH, STEPS, finish, ten_losses

GPT = dict(vocab_size=40, n_embd=12, n_layer=2, n_head=3, n_inner=20, n_positions=16, layer_norm_epsilon=1e-5,
           activation_function="gelu_new", embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0, model_type="gpt2")


def gpt_shapes():
    width, inner = GPT["n_embd"], GPT["n_inner"]
    both = lambda name, into, out: {name + ".weight": (into, out), name + ".bias": (out,)}
    norm = lambda name: {name + ".weight": (width,), name + ".bias": (width,)}
    found = {"transformer.wte.weight": (GPT["vocab_size"], width),
             "transformer.wpe.weight": (GPT["n_positions"], width)}
    for i in range(GPT["n_layer"]):
        block = f"transformer.h.{i}."
        found.update(norm(block + "ln_1"))
        found.update(both(block + "attn.c_attn", width, 3 * width))
        found.update(both(block + "attn.c_proj", width, width))
        found.update(norm(block + "ln_2"))
        found.update(both(block + "mlp.c_fc", width, inner))
        found.update(both(block + "mlp.c_proj", inner, width))
    found.update(norm("transformer.ln_f"))
    return found


def gpt_forward(params, ids, mask):
    """Pre-norm blocks, causal attention, the word table as head."""
    width, heads, eps = GPT["n_embd"], GPT["n_head"], GPT["layer_norm_epsilon"]
    length = ids.shape[1]
    linear = lambda x, name: x @ params[name + ".weight"] + params[name + ".bias"]
    norm = lambda x, name: F.layer_norm(x, (width,), params[name + ".weight"], params[name + ".bias"], eps)
    words = params["transformer.wte.weight"]
    x = words[ids] + params["transformer.wpe.weight"][:length]
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1) | (mask == 0)[:, None, None, :]
    for i in range(GPT["n_layer"]):
        block = f"transformer.h.{i}."
        qkv = linear(norm(x, block + "ln_1"), block + "attn.c_attn")
        q, k, v = (y.view(*y.shape[:2], heads, width // heads).transpose(1, 2) for y in qkv.chunk(3, -1))
        scores = (q @ k.transpose(2, 3) / math.sqrt(width // heads)).masked_fill(hidden, float("-inf"))
        context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = x + linear(context, block + "attn.c_proj")
        y = linear(norm(x, block + "ln_2"), block + "mlp.c_fc")
        y = 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + linear(y, block + "mlp.c_proj")
    return norm(x, "transformer.ln_f") @ words.T


def export_gpt(path):
    generator = torch.Generator().manual_seed(20260102)
    params = {}
    for name, shape in gpt_shapes().items():
        x = torch.randn(shape, generator=generator, dtype=torch.float64) * 0.5
        x = 1 + 0.2 * x if ".ln_" in name and name.endswith("weight") else x
        params[name] = x.float().double().requires_grad_()
    out = {"parameter." + name: value.clone() for name, value in params.items()}
    batches = []
    for i in range(STEPS):
        lengths = torch.randint(3, LENGTH + 1, (BATCH, 1), generator=generator)
        lengths[0] = LENGTH
        mask = (torch.arange(LENGTH) < lengths).long()
        ids = torch.randint(0, GPT["vocab_size"], (BATCH, LENGTH), generator=generator) * mask
        labels = ids.masked_fill(mask == 0, -100)
        labels[1, 1] = -100  # a token that is read but not asked for
        batches.append((ids, mask, labels))
        fields = ("input_ids", "attention_mask", "labels")
        out.update({f"batch.{i}.{name}": value for name, value in zip(fields, batches[-1])})
    decayed = dict(params=[value for value in params.values() if value.dim() >= 2])
    others = dict(params=[value for value in params.values() if value.dim() < 2], weight_decay=0.0)
    optimizer = torch.optim.AdamW([decayed, others], **ADAMW)

    def forward_loss(batch):
        ids, mask, labels = batch
        logits = gpt_forward(params, ids, mask)
        return logits, F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())

    ten_losses(params, batches, forward_loss, optimizer, out)
    finish(path, out, GPT)
