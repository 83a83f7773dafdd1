# A node as a whole: opening, running, closing.
libulnetcore_a_SOURCES += %D%/check.c
libulnetcore_a_SOURCES += %D%/conf.c
libulnetcore_a_SOURCES += %D%/fault.c
libulnetcore_a_SOURCES += %D%/layer.c %D%/layer.h
libulnetcore_a_SOURCES += %D%/mem.c
libulnetcore_a_SOURCES += %D%/nis.c
libulnetcore_a_SOURCES += %D%/node.c %D%/node.h
libulnetcore_a_SOURCES += %D%/policies.c
libulnetcore_a_SOURCES += %D%/routes.c
libulnetcore_a_SOURCES += %D%/thread.c %D%/thread.h
libulnetcore_a_SOURCES += %D%/watch.c %D%/watch.h
libulnetcore_a_SOURCES += %D%/work.c
