# Local interfaces, and the snapshot that lists them.
libulnetcore_la_SOURCES += %D%/net.c %D%/net.h
libulnetcore_la_SOURCES += %D%/ni.c %D%/ni.h
