# Memory that is lent to the other side, and moving it.
libulrpccore_a_SOURCES += %D%/bulk.c %D%/bulk.h %D%/field.h
libulrpccore_a_SOURCES += %D%/place.c %D%/place.h
libulrpccore_a_SOURCES += %D%/remote.c
libulrpccore_a_SOURCES += %D%/severed.h
libulrpccore_a_SOURCES += %D%/transfer.c %D%/transfer.h
libulrpccore_a_SOURCES += %D%/transfer_priv.h
libulrpccore_a_SOURCES += %D%/tries.h
