# Who is at the other end.
libulnetcore_a_SOURCES += %D%/claim.c %D%/claim.h
libulnetcore_a_SOURCES += %D%/configured.c
libulnetcore_a_SOURCES += %D%/member.c %D%/member.h
libulnetcore_a_SOURCES += %D%/peer.c %D%/peer.h
libulnetcore_a_SOURCES += %D%/provenance.c %D%/provenance.h
