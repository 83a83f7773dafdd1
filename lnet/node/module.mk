# A node as a whole: opening, running, closing; and the control side: NIs, routes,
# policies, fault rules and registered memory, which come and go.
libulnetcore_a_SOURCES += %D%/conf.c
libulnetcore_a_SOURCES += %D%/faults.c
libulnetcore_a_SOURCES += %D%/layer.c
libulnetcore_a_SOURCES += %D%/mems.c
libulnetcore_a_SOURCES += %D%/nis.c
libulnetcore_a_SOURCES += %D%/node.c %D%/node.h
libulnetcore_a_SOURCES += %D%/objects.c
libulnetcore_a_SOURCES += %D%/policies.c
libulnetcore_a_SOURCES += %D%/routes.c
libulnetcore_a_SOURCES += %D%/thread.c
libulnetcore_a_SOURCES += %D%/waits.c %D%/waits.h
libulnetcore_a_SOURCES += %D%/watch.c
