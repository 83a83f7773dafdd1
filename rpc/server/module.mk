# Services, and their requests.
libulrpccore_la_SOURCES += %D%/arrive.c
libulrpccore_la_SOURCES += %D%/deadline.c %D%/deadline.h
libulrpccore_la_SOURCES += %D%/exec.c %D%/exec.h
libulrpccore_la_SOURCES += %D%/export.c %D%/export.h
libulrpccore_la_SOURCES += %D%/party.c %D%/party.h
libulrpccore_la_SOURCES += %D%/reply.c %D%/reply.h
libulrpccore_la_SOURCES += %D%/request.c %D%/request.h
libulrpccore_la_SOURCES += %D%/request_priv.h
libulrpccore_la_SOURCES += %D%/request_bulk.c
libulrpccore_la_SOURCES += %D%/request_info.c
libulrpccore_la_SOURCES += %D%/request_reply.c
libulrpccore_la_SOURCES += %D%/requests.c
libulrpccore_la_SOURCES += %D%/sched.c %D%/sched.h
libulrpccore_la_SOURCES += %D%/sched_fair.c %D%/sched_fifo.c
libulrpccore_la_SOURCES += %D%/service.c %D%/service.h
libulrpccore_la_SOURCES += %D%/stray.c %D%/stray.h
libulrpccore_la_SOURCES += %D%/vacant.c %D%/vacant.h
