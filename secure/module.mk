# Keys, handshakes and sealed records. Knows OpenSSL and base/, and nothing of LNet.
libulnetsecure_a_SOURCES += %D%/identity.h %D%/identity.c
libulnetsecure_a_SOURCES += %D%/digest.h %D%/handshake.h %D%/handshake_priv.h \
	%D%/keys.h %D%/munge.h %D%/once.h %D%/piece.h %D%/record.h %D%/record_priv.h \
	%D%/stream.h %D%/tickets.h
if WITH_TLS
libulnetsecure_a_SOURCES += %D%/digest.c
libulnetsecure_a_SOURCES += %D%/once.c
libulnetsecure_a_SOURCES += %D%/handshake.c
libulnetsecure_a_SOURCES += %D%/keys.c
libulnetsecure_a_SOURCES += %D%/piece.c
libulnetsecure_a_SOURCES += %D%/record.c
libulnetsecure_a_SOURCES += %D%/stream.c
libulnetsecure_a_SOURCES += %D%/tickets.c
if WITH_MUNGE
libulnetsecure_a_SOURCES += %D%/munge.c
else
libulnetsecure_a_SOURCES += %D%/munge_none.c
endif
else
libulnetsecure_a_SOURCES += %D%/none.c
endif
EXTRA_DIST += %D%/digest.c %D%/handshake.c %D%/keys.c %D%/once.c %D%/piece.c %D%/record.c \
	%D%/stream.c %D%/tickets.c %D%/none.c \
	%D%/munge.c %D%/munge_none.c
