"""Training steps of whole networks in a framework, with and without us: ``convgrad bench train --help``.

    configurations      in which ways a step is run: one row each
    frameworks          who trains: one row each, which names the module that knows the framework
    job                 what a child is asked to train
    child, entrant      the two ends of the pipe; neither knows a framework
    torch_trainer       PyTorch: a model, its step, and its convolutions one by one
    torch_layers        PyTorch: each convolution of a model, native and ours in turns
    torch_models        PyTorch: the networks, from the tables of their papers
    rounds              everybody takes turns in random order, as one plain dictionary
    ratios              that dictionary as medians, quartiles and ratios of turns in the same round
    report, picture     the same for people
    stored              runs in files

Only the modules that are named after a framework import it, and only children import them.
"""
