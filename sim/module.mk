# Clusters of nodes on virtual time.
libulnetcore_a_SOURCES += %D%/audit.c %D%/buf.c %D%/way.c
libulnetcore_a_SOURCES += %D%/sim.c %D%/sim_priv.h %D%/verbs.h
