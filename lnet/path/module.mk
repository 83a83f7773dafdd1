# Which way a message goes.
libulnetcore_a_SOURCES += %D%/explain.c
libulnetcore_a_SOURCES += %D%/failed_paths.c %D%/failed_paths.h
libulnetcore_a_SOURCES += %D%/health.c %D%/health.h
libulnetcore_a_SOURCES += %D%/path.c %D%/path.h
libulnetcore_a_SOURCES += %D%/rank.h
libulnetcore_a_SOURCES += %D%/verdict.c %D%/verdict.h
libulnetcore_a_SOURCES += %D%/select.c %D%/select.h
libulnetcore_a_SOURCES += %D%/stage.c %D%/stage.h
