# The LND between the processes of a host.
libulnetcore_a_SOURCES += %D%/ring.c %D%/ring.h
