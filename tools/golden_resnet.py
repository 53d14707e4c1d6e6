"""A narrow ResNet-18 in plain PyTorch; see export_reference.py."""
import math

import torch
import torch.nn.functional as F

from golden_file import BATCH, STEPS, finish, ten_losses

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
