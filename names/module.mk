# Targets as texts: what they say, and where names are looked up.
libulnetcore_a_SOURCES += %D%/answer.c %D%/answer.h
libulnetcore_a_SOURCES += %D%/file.c %D%/file.h
libulnetcore_a_SOURCES += %D%/inotify.c %D%/inotify.h
libulnetcore_a_SOURCES += %D%/lookup.c %D%/lookup.h
libulnetcore_a_SOURCES += %D%/names.c %D%/names.h
libulnetcore_a_SOURCES += %D%/resolver.c %D%/resolver.h
libulnetcore_a_SOURCES += %D%/target.c %D%/target.h
