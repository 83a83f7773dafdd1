# Clusters of nodes on virtual time.
