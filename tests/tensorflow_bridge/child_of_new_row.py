"""Run by a test: tensors of TensorFlow with an activation that only a row says."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import convgrad.tensorflow
from new_row import NAME, check_door, check_package


def main() -> None:
    check_package()
    check_door(tf.constant, lambda tensor: tensor.numpy(), tf.Tensor)
    x = tf.reshape(tf.linspace(-2.0, 3.0, 48), (2, 2, 3, 4))
    y, *_ = tf.function(lambda x: convgrad.tensorflow.batch_norm_act(x, activation=NAME))(x)
    plain, *_ = convgrad.tensorflow.batch_norm_act(x)
    np.testing.assert_allclose(y, tf.nn.softsign(plain), atol=1e-5)


if __name__ == "__main__":
    main()
