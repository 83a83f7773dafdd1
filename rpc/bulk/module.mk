# Bulk: memory that a caller lends to a server, and the moving of what is in it.
libulrpccore_a_SOURCES += %D%/bulk.c %D%/bulk.h %D%/bulk_priv.h
libulrpccore_a_SOURCES += %D%/chunk.c
libulrpccore_a_SOURCES += %D%/cover.c
libulrpccore_a_SOURCES += %D%/loss.h
libulrpccore_a_SOURCES += %D%/remote.c
libulrpccore_a_SOURCES += %D%/seal.c %D%/seal.h
libulrpccore_a_SOURCES += %D%/sealers.c %D%/sealers.h
libulrpccore_a_SOURCES += %D%/transfer_seal.c
libulrpccore_a_SOURCES += %D%/transfer.c %D%/transfer.h
libulrpccore_a_SOURCES += %D%/transfer_priv.h
libulrpccore_a_SOURCES += %D%/wait.c
