# Clusters of nodes on virtual time.
libulnetlabcore_a_SOURCES += %D%/audit.c %D%/buf.c %D%/check.c %D%/way.c
libulnetlabcore_a_SOURCES += %D%/names.c
libulnetlabcore_a_SOURCES += %D%/sim.c %D%/sim.h %D%/sim_priv.h
