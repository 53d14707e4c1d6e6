"""What the golden files of tests/golden share: ten steps of training, and safetensors without a library."""
import json
import struct

import torch

ADAMW = dict(lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.1)
BATCH, LENGTH, STEPS = 4, 11, 10


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
