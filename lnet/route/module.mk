# Which nets are reached by which gateways.
libulnetcore_a_SOURCES += %D%/route.c %D%/route.h
