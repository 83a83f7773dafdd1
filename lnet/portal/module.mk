# Portals, match entries, memory descriptors, events.
libulnetcore_a_SOURCES += %D%/event.c %D%/event.h
libulnetcore_a_SOURCES += %D%/match.c %D%/match.h
libulnetcore_a_SOURCES += %D%/md.c %D%/md.h
libulnetcore_a_SOURCES += %D%/mem.c %D%/mem.h
libulnetcore_a_SOURCES += %D%/portal.c %D%/portal.h
