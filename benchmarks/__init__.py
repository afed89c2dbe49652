"""What is measured in a clone; the benchmarks of the wheel are `convgrad._apps.bench`.

    train       training steps of whole networks in a framework: `convgrad bench train --help`

`python -m benchmarks` is `convgrad bench`.
"""
