# The services of a node, which put the folders below together, and tombstones.
libulrpccore_a_SOURCES += %D%/services.c
libulrpccore_a_SOURCES += %D%/service_conf.c %D%/service_conf.h
libulrpccore_a_SOURCES += %D%/tombstone.c %D%/tombstone.h
