# RPC as a whole: nothing of it is above.
libulrpccore_a_SOURCES += %D%/open.c
