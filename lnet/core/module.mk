# What all of LNet knows: a CPT, settings, counters, the log.
libulnetcore_a_SOURCES += %D%/cpt.c %D%/cpt.h
libulnetcore_a_SOURCES += %D%/directory.c %D%/directory.h
libulnetcore_a_SOURCES += %D%/log.c
libulnetcore_a_SOURCES += %D%/setting.c %D%/setting.h
libulnetcore_a_SOURCES += %D%/stat.c %D%/stat.h %D%/stat.def
