# The contract between LNet and its LNDs, and their registry.
libulnetcore_a_SOURCES += %D%/cause.c %D%/cause.h
libulnetcore_a_SOURCES += %D%/connect.c %D%/connect.h
libulnetcore_a_SOURCES += %D%/lnd.c %D%/lnd.h %D%/lnds.h
libulnetcore_a_SOURCES += %D%/netif.c %D%/netif.h
libulnetcore_a_SOURCES += %D%/silence.c %D%/silence.h
