# Who is at the other end.
libulnetcore_la_SOURCES += %D%/peer.c %D%/peer.h
