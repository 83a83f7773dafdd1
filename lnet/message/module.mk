# Operations, messages, and the waiting of both.
libulnetcore_a_SOURCES += %D%/await.c %D%/await.h
libulnetcore_a_SOURCES += %D%/copy.c %D%/copy.h
libulnetcore_a_SOURCES += %D%/credit.c %D%/credit.h
libulnetcore_a_SOURCES += %D%/delay.c %D%/delay.h
libulnetcore_a_SOURCES += %D%/end.c %D%/end.h
libulnetcore_a_SOURCES += %D%/forward.c %D%/forward.h
libulnetcore_a_SOURCES += %D%/hold.c %D%/hold.h
libulnetcore_a_SOURCES += %D%/leave.c %D%/leave.h
libulnetcore_a_SOURCES += %D%/lent.c
libulnetcore_a_SOURCES += %D%/msg.c %D%/msg.h
libulnetcore_a_SOURCES += %D%/msgs.c %D%/msgs.h
libulnetcore_a_SOURCES += %D%/op.c %D%/op.h
libulnetcore_a_SOURCES += %D%/park.c %D%/park.h
libulnetcore_a_SOURCES += %D%/parse.c
libulnetcore_a_SOURCES += %D%/request.c %D%/request.h
libulnetcore_a_SOURCES += %D%/shutdown.c %D%/shutdown.h
libulnetcore_a_SOURCES += %D%/wire.c %D%/wire.h
