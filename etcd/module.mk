# Names that etcd knows. A library of its own, which loads libcurl: programs
# that do not look anything up there do not.
if WITH_ETCD
libulnetetcdcore_a_SOURCES += %D%/entry.c
libulnetetcdcore_a_SOURCES += %D%/feed.c
libulnetetcdcore_a_SOURCES += %D%/node.c %D%/node.h
libulnetetcdcore_a_SOURCES += %D%/request.c %D%/request.h
libulnetetcdcore_a_SOURCES += %D%/settings.c %D%/settings.h
else
libulnetetcdcore_a_SOURCES += %D%/none.c
endif
EXTRA_DIST += %D%/entry.c %D%/feed.c %D%/node.c %D%/node.h %D%/none.c \
	%D%/request.c %D%/request.h %D%/settings.c %D%/settings.h
