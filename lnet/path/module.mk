# Which way a message goes.
libulnetcore_la_SOURCES += %D%/explain.c
libulnetcore_la_SOURCES += %D%/health.c %D%/health.h
libulnetcore_la_SOURCES += %D%/path.c %D%/path.h
libulnetcore_la_SOURCES += %D%/rank.h
libulnetcore_la_SOURCES += %D%/ruling.c %D%/ruling.h
libulnetcore_la_SOURCES += %D%/select.c %D%/select.h
libulnetcore_la_SOURCES += %D%/tried.c %D%/tried.h
