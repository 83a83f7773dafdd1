# The LND over TCP.
libulnetcore_a_SOURCES += %D%/attempt.c
libulnetcore_a_SOURCES += %D%/caller.c %D%/caller.h
libulnetcore_a_SOURCES += %D%/conn.c %D%/conn.h
libulnetcore_a_SOURCES += %D%/handshake.c %D%/handshake.h %D%/handshake_priv.h
libulnetcore_a_SOURCES += %D%/host.c %D%/host.h
libulnetcore_a_SOURCES += %D%/link.c
libulnetcore_a_SOURCES += %D%/listener.c
libulnetcore_a_SOURCES += %D%/message.h %D%/rx.c %D%/tx.c
libulnetcore_a_SOURCES += %D%/peer.c %D%/peer.h
libulnetcore_a_SOURCES += %D%/proto.c %D%/proto.h
libulnetcore_a_SOURCES += %D%/sock.c %D%/sock.h
libulnetcore_a_SOURCES += %D%/socklnd.c %D%/socklnd.h
libulnetcore_a_SOURCES += %D%/tls.c %D%/tls.h
libulnetcore_a_SOURCES += %D%/tunable.def
