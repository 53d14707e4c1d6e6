#!/usr/bin/env python3
"""Writes the golden files of tests/golden: a small BERT classifier, a small GPT-2 and a narrow ResNet-18 in
plain PyTorch, each with its logits, every gradient of the first step and ten losses (AdamW; SGD for the last).

    tools/export_reference.py [tests/data_files] [bert gpt resnet]

Needs PyTorch alone (python3-torch). Everything is computed in double precision and stored in single, so that
the files do not hold one library's rounding. The same PyTorch writes the same files.
"""
import json
import math
import struct
import sys

import torch
import torch.nn.functional as F

CONFIG = dict(vocab_size=40, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
              max_position_embeddings=16, type_vocab_size=2, layer_norm_eps=1e-12, hidden_act="gelu",
              hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, model_type="bert", pad_token_id=0,
              id2label={"0": "a", "1": "b", "2": "c"})
ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
BATCH, LENGTH, STEPS = 4, 11, 10


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


def write_safetensors(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        tensor = tensor.detach().contiguous()
        tensor = tensor.float() if tensor.is_floating_point() else tensor.long()
        raw = tensor.numpy().tobytes()
        kind = "F32" if tensor.is_floating_point() else "I64"
        offsets = [len(data), len(data) + len(raw)]
        header[name] = dict(dtype=kind, shape=list(tensor.shape), data_offsets=offsets)
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def ten_losses(params, batches, forward_loss, optimizer, out):
    """Trains on the batches; adds the first logits and gradients and all losses to `out`."""
    losses = []
    for i, batch in enumerate(batches):
        optimizer.zero_grad()
        logits, loss = forward_loss(batch)
        loss.backward()
        if i == 0:
            out["logits"] = logits
            out.update({"gradient." + name: value.grad.clone() for name, value in params.items()})
        optimizer.step()
        losses.append(loss.item())
    out["losses"] = torch.tensor(losses)


def finish(path, out, config):
    write_safetensors(path, out, {"config": json.dumps(config), "made_by": "tools/export_reference.py"})
    print(path, "losses", " ".join(f"{x:.6f}" for x in out["losses"].tolist()))


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


RESNET = dict(model_type="resnet-cifar", widths=[4, 6, 8, 10], blocks=2, num_channels=3, image_size=12, num_labels=5)
SGD = dict(lr=0.005, momentum=0.9, weight_decay=0.01, nesterov=True)


def resnet_units():
    """(name of the convolution, of the norm, in, out, kernel, stride) in order of use."""
    into = RESNET["widths"][0]
    yield "conv1", "bn1", RESNET["num_channels"], into, 3, 1
    for stage, width in enumerate(RESNET["widths"]):
        for i in range(RESNET["blocks"]):
            block, stride = f"layer{stage + 1}.{i}.", 2 if stage and not i else 1
            yield block + "conv1", block + "bn1", into, width, 3, stride
            yield block + "conv2", block + "bn2", width, width, 3, 1
            if stride != 1 or into != width:
                yield block + "downsample.0", block + "downsample.1", into, width, 1, stride
            into = width


def resnet_forward(params, buffers, images, training):
    strides = {conv: (norm, stride, kernel // 2) for conv, norm, _, _, kernel, stride in resnet_units()}

    def unit(x, conv):
        norm, stride, padding = strides[conv]
        x = F.conv2d(x, params[conv + ".weight"], stride=stride, padding=padding)
        mean, var = buffers[norm + ".running_mean"], buffers[norm + ".running_var"]
        return F.batch_norm(x, mean, var, params[norm + ".weight"], params[norm + ".bias"], training, 0.1, 1e-5)

    x = F.relu(unit(images, "conv1"))
    for stage in range(len(RESNET["widths"])):
        for i in range(RESNET["blocks"]):
            block = f"layer{stage + 1}.{i}."
            short = unit(x, block + "downsample.0") if block + "downsample.0" in strides else x
            x = F.relu(unit(F.relu(unit(x, block + "conv1")), block + "conv2") + short)
    return F.linear(x.mean((2, 3)), params["fc.weight"], params["fc.bias"])


def export_resnet(path):
    generator = torch.Generator().manual_seed(20260103)
    draw = lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64)
    params, buffers = {}, {}
    for conv, norm, into, width, kernel, _ in resnet_units():
        params[conv + ".weight"] = draw(width, into, kernel, kernel) * math.sqrt(2 / (into * kernel * kernel))
        params[norm + ".weight"], params[norm + ".bias"] = 1 + 0.1 * draw(width), 0.1 * draw(width)
        buffers[norm + ".running_mean"] = torch.zeros(width, dtype=torch.float64)
        buffers[norm + ".running_var"] = torch.ones(width, dtype=torch.float64)
    params["fc.weight"] = 0.5 * draw(RESNET["num_labels"], RESNET["widths"][-1])
    params["fc.bias"] = 0.5 * draw(RESNET["num_labels"])
    params = {name: value.float().double().requires_grad_() for name, value in params.items()}
    out = {"parameter." + name: value.clone() for name, value in params.items()}
    batches = []
    for i in range(STEPS):
        side = RESNET["image_size"]
        images = (draw(2 * BATCH, RESNET["num_channels"], side, side) + 0.5).float().double()
        labels = torch.randint(0, RESNET["num_labels"], (2 * BATCH,), generator=generator)
        batches.append((images, labels))
        out[f"batch.{i}.images"], out[f"batch.{i}.labels"] = images, labels
    decayed = dict(params=[value for value in params.values() if value.dim() >= 2])
    others = dict(params=[value for value in params.values() if value.dim() < 2], weight_decay=0.0)
    optimizer = torch.optim.SGD([decayed, others], **SGD)

    def forward_loss(batch):
        logits = resnet_forward(params, buffers, batch[0], True)
        return logits, F.cross_entropy(logits, batch[1])

    ten_losses(params, batches, forward_loss, optimizer, out)
    out.update({"buffer." + name: value for name, value in buffers.items()})  # after the last step
    out["evaluated"] = resnet_forward(params, buffers, batches[0][0], False)
    finish(path, out, RESNET)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else "tests/data_files"
    torch.set_num_threads(1)
    exports = dict(bert=export_bert, gpt=export_gpt, resnet=export_resnet)
    for name in sys.argv[2:] or exports:
        exports[name](f"{folder}/golden_{name}.safetensors")


if __name__ == "__main__":
    main()
