# The contract between LNet and its LNDs, and their registry.
libulnetcore_la_SOURCES += %D%/cause.c %D%/cause.h
libulnetcore_la_SOURCES += %D%/lnd.c %D%/lnd.h
libulnetcore_la_SOURCES += %D%/netif.c %D%/netif.h
libulnetcore_la_SOURCES += %D%/silence.c %D%/silence.h
