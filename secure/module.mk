# Keys, handshakes and sealed records. Knows OpenSSL and base/, and nothing of LNet.
if WITH_TLS
libulnetsecure_a_SOURCES += \
	%D%/handshake.h %D%/handshake_priv.h %D%/handshake.c \
	%D%/identity.h %D%/identity.c \
	%D%/keys.h %D%/keys.c \
	%D%/record.h %D%/record.c \
	%D%/stream.h %D%/stream.c
endif
EXTRA_DIST += %D%/handshake.h %D%/handshake_priv.h %D%/identity.h %D%/keys.h %D%/record.h %D%/stream.h
