# The contract between LNet and its LNDs, and what LNDs share.
libulnetcore_a_SOURCES += %D%/cause.h
libulnetcore_a_SOURCES += %D%/connect.c %D%/connect.h
libulnetcore_a_SOURCES += %D%/link.c %D%/link.h
libulnetcore_a_SOURCES += %D%/lnd.c %D%/lnd.h %D%/lnds.h
libulnetcore_a_SOURCES += %D%/netif.c %D%/netif.h
libulnetcore_a_SOURCES += %D%/ports.c %D%/ports.h
libulnetcore_a_SOURCES += %D%/silence.c %D%/silence.h
libulnetcore_a_SOURCES += %D%/tls_rules.c %D%/tls_rules.h
