# What nodes tell each other about themselves.
libulnetcore_a_SOURCES += %D%/ask.c %D%/ask.h
libulnetcore_a_SOURCES += %D%/course.c %D%/course.h
libulnetcore_a_SOURCES += %D%/discover.c %D%/discover.h
libulnetcore_a_SOURCES += %D%/discovery.h
libulnetcore_a_SOURCES += %D%/info.c %D%/info.h
libulnetcore_a_SOURCES += %D%/late.c %D%/late.h
libulnetcore_a_SOURCES += %D%/merge.c %D%/merge.h
libulnetcore_a_SOURCES += %D%/merging.c %D%/merging.h
libulnetcore_a_SOURCES += %D%/ping.c
libulnetcore_a_SOURCES += %D%/recovery.c %D%/recovery.h
libulnetcore_a_SOURCES += %D%/router.c %D%/router.h
libulnetcore_a_SOURCES += %D%/state.c %D%/state.h
libulnetcore_a_SOURCES += %D%/target.c %D%/target.h
libulnetcore_a_SOURCES += %D%/tell.c
libulnetcore_a_SOURCES += %D%/told.c %D%/told.h
libulnetcore_a_SOURCES += %D%/witness.c %D%/witness.h
