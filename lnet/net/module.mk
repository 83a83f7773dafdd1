# Local nets and interfaces, and the snapshot that lists them.
libulnetcore_a_SOURCES += %D%/net.c %D%/net.h
libulnetcore_a_SOURCES += %D%/ni.c %D%/ni.h
