# Which nets are reached by which gateways.
libulnetcore_a_SOURCES += %D%/route.c %D%/table.c
libulnetcore_a_SOURCES += %D%/route.h %D%/table.h
