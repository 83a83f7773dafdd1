# The LND between nodes of one process, over a network with faults.
libulnetcore_la_SOURCES += %D%/conn.c %D%/conn.h
libulnetcore_la_SOURCES += %D%/move.c %D%/move.h
libulnetcore_la_SOURCES += %D%/net.c %D%/net.h
libulnetcore_la_SOURCES += %D%/simlnd.c %D%/simlnd.h
