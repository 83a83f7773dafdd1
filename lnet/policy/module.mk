# Which paths are to be preferred, as users say.
libulnetcore_a_SOURCES += %D%/policy.c %D%/policy.h
