# The contract between LNet and its LNDs, and their registry.
