# Requests, replies and bulk data: libulrpc, on libulnet's public headers.
libulrpccore_a_SOURCES += %D%/control.c %D%/control.h
libulrpccore_a_SOURCES += %D%/conn_event.c %D%/conn_event.h
libulrpccore_a_SOURCES += %D%/estimate.c %D%/estimate.h
libulrpccore_a_SOURCES += %D%/flavour.h
libulrpccore_a_SOURCES += %D%/inbox.c %D%/inbox.h
libulrpccore_a_SOURCES += %D%/keys.c %D%/keys.h
libulrpccore_a_SOURCES += %D%/log_share.c %D%/log_share.h
libulrpccore_a_SOURCES += %D%/munge.c %D%/munge.h
libulrpccore_a_SOURCES += %D%/owner.h
libulrpccore_a_SOURCES += %D%/quota.c %D%/quota.h
libulrpccore_a_SOURCES += %D%/rpc.c %D%/rpc.h
libulrpccore_a_SOURCES += %D%/rules.c %D%/rules.h
libulrpccore_a_SOURCES += %D%/run.c %D%/run.h
libulrpccore_a_SOURCES += %D%/forwarded.c %D%/forwarded.h
libulrpccore_a_SOURCES += %D%/sealed.c %D%/sealed.h
libulrpccore_a_SOURCES += %D%/text.c %D%/text.h
libulrpccore_a_SOURCES += %D%/slab.c %D%/slab.h
