# The services of a node (they join the folders below), and their tombstones.
libulrpccore_a_SOURCES += %D%/services.c
libulrpccore_a_SOURCES += %D%/gauges.c %D%/gauges.h
libulrpccore_a_SOURCES += %D%/open.c %D%/open.h
libulrpccore_a_SOURCES += %D%/portals.c %D%/portals.h
libulrpccore_a_SOURCES += %D%/service_conf.c %D%/service_conf.h
libulrpccore_a_SOURCES += %D%/set.c %D%/set.h
libulrpccore_a_SOURCES += %D%/tombstone.c %D%/tombstone.h
