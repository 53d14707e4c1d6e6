#!/usr/bin/env python3
"""Writes the golden files of tests/golden: a small BERT classifier, a small GPT-2 and a narrow ResNet-18 in
plain PyTorch, each with its logits, every gradient of the first step and ten losses (AdamW; SGD for the last).

    tools/export_reference.py [tests/data_files] [bert gpt resnet]

Needs PyTorch alone (python3-torch). Everything is computed in double precision and stored in single, so that
the files do not hold one library's rounding. The same PyTorch writes the same files.
"""
import math
import sys

import torch
import torch.nn.functional as F

from golden_file import ADAMW, BATCH, LENGTH, STEPS, finish, ten_losses
from golden_gpt import export_gpt
from golden_resnet import export_resnet

CONFIG = dict(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
              max_position_embeddings=16, type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu",
              hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, model_type="bert", pad_token_id=0,
              id2label={"0": "a", "1": "b", "2": "c"})


def shapes():
    """Every parameter's shape by its Hugging Face name."""
    width, inner = CONFIG["hidden_size"], CONFIG["intermediate_size"]
    both = lambda name, out, into: {name + ".weight": (out, into), name + ".bias": (out,)}
    norm = lambda name: {name + ".weight": (width,), name + ".bias": (width,)}
    found = {"bert.embeddings.word_embeddings.weight": (CONFIG["vocab_size"], width),
             "bert.embeddings.position_embeddings.weight": (CONFIG["max_position_embeddings"], width),
             "bert.embeddings.token_type_embeddings.weight": (CONFIG["type_vocab_size"], width),
             **norm("bert.embeddings.LayerNorm")}
    for i in range(CONFIG["num_hidden_layers"]):
        layer = f"bert.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            found.update(both(layer + "attention.self." + name, width, width))
        found.update(both(layer + "attention.output.dense", width, width))
        found.update(norm(layer + "attention.output.LayerNorm"))
        found.update(both(layer + "intermediate.dense", inner, width))
        found.update(both(layer + "output.dense", width, inner))
        found.update(norm(layer + "output.LayerNorm"))
    found.update(both("bert.pooler.dense", width, width))
    found.update(both("classifier", len(CONFIG["id2label"]), width))
    return found


def draw_parameters(generator):
    """Large values, so that a mistake shows; norms near 1. Rounded to single precision, as they are stored.
    """
    params = {}
    for name, shape in shapes().items():
        x = torch.randn(shape, generator=generator, dtype=torch.float64) * 0.5
        if name.endswith("LayerNorm.weight"):
            x = 1 + 0.2 * x
        if name == "bert.embeddings.word_embeddings.weight":
            x[CONFIG["pad_token_id"]] = 0
        params[name] = x.float().double().requires_grad_()
    return params


def draw_batch(generator):
    lengths = torch.randint(3, LENGTH + 1, (BATCH, 1), generator=generator)
    lengths[0] = LENGTH
    mask = (torch.arange(LENGTH) < lengths).long()
    ids = torch.randint(1, CONFIG["vocab_size"], (BATCH, LENGTH), generator=generator) * mask
    types = (torch.arange(LENGTH) >= lengths // 2).long() * mask
    labels = torch.randint(0, len(CONFIG["id2label"]), (BATCH,), generator=generator)
    return ids, types, mask, labels


def forward(params, ids, types, mask):
    width, heads, eps = CONFIG["hidden_size"], CONFIG["num_attention_heads"], CONFIG["layer_norm_eps"]
    linear = lambda x, name: F.linear(x, params[name + ".weight"], params[name + ".bias"])
    norm = lambda x, name: F.layer_norm(x, (width,), params[name + ".weight"], params[name + ".bias"], eps)
    table = lambda name: params[f"bert.embeddings.{name}_embeddings.weight"]
    x = F.embedding(ids, table("word"), padding_idx=CONFIG["pad_token_id"])
    x = x + table("position")[: ids.shape[1]] + F.embedding(types, table("token_type"))
    x = norm(x, "bert.embeddings.LayerNorm")
    hidden_from_padding = (1 - mask.double())[:, None, None, :] * torch.finfo(torch.float32).min
    for i in range(CONFIG["num_hidden_layers"]):
        layer = f"bert.encoder.layer.{i}."
        split = lambda y: y.view(*y.shape[:2], heads, width // heads).transpose(1, 2)
        q, k, v = (split(linear(x, layer + "attention.self." + name)) for name in ("query", "key", "value"))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // heads) + hidden_from_padding
        context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = norm(x + linear(context, layer + "attention.output.dense"), layer + "attention.output.LayerNorm")
        inner = F.gelu(linear(x, layer + "intermediate.dense"))
        x = norm(x + linear(inner, layer + "output.dense"), layer + "output.LayerNorm")
    return linear(torch.tanh(linear(x[:, 0], "bert.pooler.dense")), "classifier")


def export_bert(path):
    generator = torch.Generator().manual_seed(20260101)
    params = draw_parameters(generator)
    batches = [draw_batch(generator) for _ in range(STEPS)]
    out = {"parameter." + name: value.clone() for name, value in params.items()}
    for i, batch in enumerate(batches):
        fields = ("input_ids", "token_type_ids", "attention_mask", "labels")
        out.update({f"batch.{i}.{name}": value for name, value in zip(fields, batch)})
    plain = lambda name: name.endswith("bias") or "LayerNorm" in name
    decayed = dict(params=[value for name, value in params.items() if not plain(name)])
    others = dict(params=[value for name, value in params.items() if plain(name)], weight_decay=0.0)
    optimizer = torch.optim.AdamW([decayed, others], **ADAMW)

    def forward_loss(batch):
        ids, types, mask, labels = batch
        logits = forward(params, ids, types, mask)
        return logits, F.cross_entropy(logits, labels)

    ten_losses(params, batches, forward_loss, optimizer, out)
    finish(path, out, CONFIG)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data_files"
    torch.set_num_threads(1)
    exports = dict(bert=export_bert, gpt=export_gpt, resnet=export_resnet)
    for name in sys.argv[2:] or exports:
        exports[name](f"{folder}/golden_{name}.safetensors")


if __name__ == "__main__":
    main()
