# The LND between nodes of one process, over a network with faults.
libulnetcore_a_SOURCES += %D%/conn.c %D%/conn.h
libulnetcore_a_SOURCES += %D%/move.c %D%/move.h
libulnetcore_a_SOURCES += %D%/net.c %D%/net.h
libulnetcore_a_SOURCES += %D%/simlnd.c %D%/simlnd.h
