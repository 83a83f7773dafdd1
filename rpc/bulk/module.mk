# Memory that is lent to the other side, and moving it.
libulrpccore_a_SOURCES += %D%/bulk.c %D%/bulk.h
libulrpccore_a_SOURCES += %D%/loss.h
libulrpccore_a_SOURCES += %D%/remote.c
libulrpccore_a_SOURCES += %D%/transfer.c %D%/transfer.h
libulrpccore_a_SOURCES += %D%/transfer_priv.h
