# The LND between nodes of one process, over a network with faults.
libulnetlabcore_a_SOURCES += %D%/conn.c
libulnetlabcore_a_SOURCES += %D%/net.c %D%/net.h
libulnetlabcore_a_SOURCES += %D%/push.c
libulnetlabcore_a_SOURCES += %D%/simlnd.c %D%/simlnd.h
