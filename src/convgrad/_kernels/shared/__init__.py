"""What several families of kernels use; no algorithm of its own."""
