# Several servers of one service, above the clients of each.
libulrpccore_a_SOURCES += %D%/bulks.c
libulrpccore_a_SOURCES += %D%/call.c %D%/call.h
libulrpccore_a_SOURCES += %D%/call_begin.c
libulrpccore_a_SOURCES += %D%/call_leave.c
libulrpccore_a_SOURCES += %D%/context.c
libulrpccore_a_SOURCES += %D%/opening.c
libulrpccore_a_SOURCES += %D%/replica.c %D%/replica.h
libulrpccore_a_SOURCES += %D%/replicas.c %D%/replicas.h
libulrpccore_a_SOURCES += %D%/set.c %D%/set.h
libulrpccore_a_SOURCES += %D%/streams.c
libulrpccore_a_SOURCES += %D%/stub.c
libulrpccore_a_SOURCES += %D%/times.c %D%/times.h
libulrpccore_a_SOURCES += %D%/verdict.c %D%/verdict.h
libulrpccore_a_SOURCES += %D%/wait.c
