# Which nets are reached by which gateways.
libulnetcore_la_SOURCES += %D%/route.c %D%/table.c
libulnetcore_la_SOURCES += %D%/route.h %D%/table.h
