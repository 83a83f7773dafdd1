# Clusters of nodes on virtual time.
libulnetlabcore_a_SOURCES += %D%/audit.c %D%/buf.c %D%/way.c
libulnetlabcore_a_SOURCES += %D%/sim.c %D%/sim_priv.h %D%/verbs.h
