# What all of LNet knows: a CPT, settings, counters, the log.
libulnetcore_la_SOURCES += %D%/cpt.c %D%/cpt.h
libulnetcore_la_SOURCES += %D%/directory.c %D%/directory.h
libulnetcore_la_SOURCES += %D%/log.c
libulnetcore_la_SOURCES += %D%/observer.h
libulnetcore_la_SOURCES += %D%/setting.c %D%/setting.h
libulnetcore_la_SOURCES += %D%/stat.c %D%/stat.h %D%/stat.def
