# The LND over TCP.
libulnetcore_la_SOURCES += %D%/proto.c %D%/proto.h
