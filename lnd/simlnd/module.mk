# The LND between nodes of one process.
