"""Tests of somebody else's batch norm with activation: `batch_norm_act` and `batch_norm_act_grad`.

`case.py` has problems and their data, `properties.py` draws them, `truth.py` says what is right and by how much a
kernel may be off, `mistakes.py` what kernels with a mistake would return, `run.py` conducts. Reports are those of
convolutions.
"""
