"""Run by a test: tensors of PyTorch with an activation that only a row says."""

from __future__ import annotations

import torch
from torch import nn

import convgrad.torch
from new_row import NAME, check_door, check_package


def main() -> None:
    check_package()
    check_door(
        lambda array: torch.from_numpy(array.copy()), lambda t: t.detach().numpy(), torch.Tensor
    )
    x = torch.linspace(-2, 3, 48).reshape(2, 4, 2, 3).requires_grad_()
    got = convgrad.torch.batch_norm_act(x, training=True, activation=NAME)
    norm = nn.functional.batch_norm(x, None, None, training=True)
    torch.testing.assert_close(got, nn.functional.softsign(norm))
    model = nn.Sequential(nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Softsign())
    want = model(x)
    report = convgrad.torch.accelerate(model, fuse=True)
    torch.testing.assert_close(model(x), want)
    assert NAME in str(report), report


if __name__ == "__main__":
    main()
