"""Training steps of whole networks in a framework, with and without us: ``convgrad bench train --help``.

    configurations      in which ways a step is run: one row each
    frameworks          who trains: one row each, which names the module that knows the framework
    job                 what a child is asked to train
    child, entrant      the two ends of the pipe; neither knows a framework
    setting_up          what all trainers set for their process
    torch_trainer       PyTorch: a model, its step, and its convolutions one by one
    torch_layers        PyTorch: each convolution of a model, native and ours in turns
    torch_models        PyTorch: the networks, from the tables of their papers
    networks, drafts    two networks for JAX and TensorFlow: their layers in order, and these by shapes
    layer_turns         each convolution of such a network, native and ours in turns
    jax_trainer, jax_layers, jax_models                         the same three for JAX
    tensorflow_trainer, tensorflow_layers, tensorflow_models    and for TensorFlow
    keras_trainer       Keras: its own networks, on any backend
    rounds              everybody takes turns in random order, as one plain dictionary
    ratios              that dictionary as medians, quartiles and ratios of turns in the same round
    report, picture     the same for people
    stored              runs in files

Only the modules that are named after a framework import it, and only children import them.
"""
