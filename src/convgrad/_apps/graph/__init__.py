"""The graph library: a table of ops, scopes, symbolic gradients, sessions. `convgrad.graph` is its door."""
