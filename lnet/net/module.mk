# Local nets and interfaces, and the snapshot that lists them.
libulnetcore_a_SOURCES += %D%/config.c %D%/config.h
libulnetcore_a_SOURCES += %D%/net.h
libulnetcore_a_SOURCES += %D%/ni.c %D%/ni.h
libulnetcore_a_SOURCES += %D%/numa.c %D%/numa.h
