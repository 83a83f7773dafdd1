# Everything that makes files: tests make theirs with it.
ulnet_keys_make = %D%/make.c %D%/make.h

if WITH_TLS
tools_bin_ulnet_keys_SOURCES = %D%/ulnet_keys.c %D%/show.c %D%/show.h
tools_bin_ulnet_keys_SOURCES += $(ulnet_keys_make)
tools_bin_ulnet_keys_LINK = $(INSTALLED_LINK)
tools_bin_ulnet_keys_LDADD = libtools.a libulnetsecure.a libulnetbase.a $(libulnet) $(OPENSSL_LIBS)
else
EXTRA_DIST += %D%/ulnet_keys.c %D%/show.c %D%/show.h %D%/make.c %D%/make.h
endif
