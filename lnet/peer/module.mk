# Who is at the other end.
libulnetcore_la_SOURCES += %D%/claim.c %D%/claim.h
libulnetcore_la_SOURCES += %D%/configured.c
libulnetcore_la_SOURCES += %D%/member.c %D%/member.h
libulnetcore_la_SOURCES += %D%/peer.c %D%/peer.h
libulnetcore_la_SOURCES += %D%/peers.c
libulnetcore_la_SOURCES += %D%/word.c %D%/word.h
