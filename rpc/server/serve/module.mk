# Requests, from their arrival to their reply.
libulrpccore_a_SOURCES += %D%/annex.c
libulrpccore_a_SOURCES += %D%/arrive.c
libulrpccore_a_SOURCES += %D%/cancel.c %D%/cancel.h
libulrpccore_a_SOURCES += %D%/deadline.c %D%/deadline.h
libulrpccore_a_SOURCES += %D%/durable.c %D%/durable.h
libulrpccore_a_SOURCES += %D%/handler.c
libulrpccore_a_SOURCES += %D%/intercept.c %D%/intercept.h
libulrpccore_a_SOURCES += %D%/long_reply.c
libulrpccore_a_SOURCES += %D%/permit.c %D%/permit.h
libulrpccore_a_SOURCES += %D%/reply.c %D%/reply.h
libulrpccore_a_SOURCES += %D%/request.c %D%/request.h
libulrpccore_a_SOURCES += %D%/request_end.c
libulrpccore_a_SOURCES += %D%/request_lost.c
libulrpccore_a_SOURCES += %D%/request_span.c
libulrpccore_a_SOURCES += %D%/seen.c
libulrpccore_a_SOURCES += %D%/service.c %D%/service.h
libulrpccore_a_SOURCES += %D%/under.c
