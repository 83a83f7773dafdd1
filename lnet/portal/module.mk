# Portals, match entries, memory descriptors, events.
libulnetcore_la_SOURCES += %D%/event.c %D%/event.h
libulnetcore_la_SOURCES += %D%/match.c %D%/match.h
libulnetcore_la_SOURCES += %D%/md.c %D%/md.h
libulnetcore_la_SOURCES += %D%/mem.c %D%/mem.h
libulnetcore_la_SOURCES += %D%/portal.c %D%/portal.h
