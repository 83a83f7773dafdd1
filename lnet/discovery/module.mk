# What nodes tell each other about themselves.
libulnetcore_a_SOURCES += %D%/ask.c %D%/ask.h
libulnetcore_a_SOURCES += %D%/discovery.c %D%/discovery.h
libulnetcore_a_SOURCES += %D%/info.c %D%/info.h
libulnetcore_a_SOURCES += %D%/merge.c %D%/merge.h
libulnetcore_a_SOURCES += %D%/reconcile.c %D%/reconcile.h
libulnetcore_a_SOURCES += %D%/recovery.c %D%/recovery.h
libulnetcore_a_SOURCES += %D%/session.c %D%/session.h
libulnetcore_a_SOURCES += %D%/state.c %D%/state.h
libulnetcore_a_SOURCES += %D%/target.c
