# RPC as a whole: uses the other folders of rpc/, none of which uses it.
libulrpccore_a_SOURCES += %D%/open.c
