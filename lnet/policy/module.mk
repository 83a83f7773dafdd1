# Which paths are to be preferred, as users say.
libulnetcore_a_SOURCES += %D%/policy.c %D%/table.c
libulnetcore_a_SOURCES += %D%/policy.h %D%/table.h
