"""Tools of the house that know nothing of convolution: errors, dtypes, switches, files, messages, memory, text."""
