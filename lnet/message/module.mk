# Operations, messages, and the waiting of both.
libulnetcore_a_SOURCES += %D%/credit.c
libulnetcore_a_SOURCES += %D%/end.c %D%/end.h
libulnetcore_a_SOURCES += %D%/forward.c %D%/forward.h
libulnetcore_a_SOURCES += %D%/in.c %D%/in.h
libulnetcore_a_SOURCES += %D%/msgs.c %D%/msgs.h
libulnetcore_a_SOURCES += %D%/op.c %D%/op.h
libulnetcore_a_SOURCES += %D%/out.c %D%/out.h
libulnetcore_a_SOURCES += %D%/parse.c
libulnetcore_a_SOURCES += %D%/request.c
libulnetcore_a_SOURCES += %D%/reroute.c %D%/reroute.h
libulnetcore_a_SOURCES += %D%/take.c
libulnetcore_a_SOURCES += %D%/tamper.c %D%/tamper.h
libulnetcore_a_SOURCES += %D%/throttle.c %D%/throttle.h
libulnetcore_a_SOURCES += %D%/unexpected.c %D%/unexpected.h
libulnetcore_a_SOURCES += %D%/wire.c %D%/wire.h
