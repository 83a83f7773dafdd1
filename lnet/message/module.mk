# Operations, messages, and the waiting of both.
libulnetcore_la_SOURCES += %D%/await.c %D%/await.h
libulnetcore_la_SOURCES += %D%/copy.c %D%/copy.h
libulnetcore_la_SOURCES += %D%/credit.c %D%/credit.h
libulnetcore_la_SOURCES += %D%/delay.c %D%/delay.h
libulnetcore_la_SOURCES += %D%/drop.c %D%/drop.h
libulnetcore_la_SOURCES += %D%/funnel.c %D%/funnel.h
libulnetcore_la_SOURCES += %D%/hold.c %D%/hold.h
libulnetcore_la_SOURCES += %D%/leave.c %D%/leave.h
libulnetcore_la_SOURCES += %D%/msg.c %D%/msg.h
libulnetcore_la_SOURCES += %D%/msgs.c %D%/msgs.h
libulnetcore_la_SOURCES += %D%/op.c %D%/op.h
libulnetcore_la_SOURCES += %D%/park.c %D%/park.h
libulnetcore_la_SOURCES += %D%/parse.c
libulnetcore_la_SOURCES += %D%/request.c %D%/request.h
libulnetcore_la_SOURCES += %D%/resend.c %D%/resend.h
libulnetcore_la_SOURCES += %D%/shutdown.c %D%/shutdown.h
libulnetcore_la_SOURCES += %D%/wire.c %D%/wire.h
