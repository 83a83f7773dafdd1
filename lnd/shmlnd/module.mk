# The LND between the processes of a host.
libulnetcore_a_SOURCES += %D%/conn.c %D%/conn.h
libulnetcore_a_SOURCES += %D%/gate.c
libulnetcore_a_SOURCES += %D%/loan.c %D%/loan.h
libulnetcore_a_SOURCES += %D%/name.c
libulnetcore_a_SOURCES += %D%/pass.c
libulnetcore_a_SOURCES += %D%/peer.c %D%/peer.h
libulnetcore_a_SOURCES += %D%/ring.c %D%/ring.h
libulnetcore_a_SOURCES += %D%/rx.c
libulnetcore_a_SOURCES += %D%/shmlnd.c %D%/shmlnd.h
libulnetcore_a_SOURCES += %D%/stall.c %D%/stall.h
libulnetcore_a_SOURCES += %D%/tunable.def
libulnetcore_a_SOURCES += %D%/view.c %D%/view.h
