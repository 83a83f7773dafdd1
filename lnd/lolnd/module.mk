# The loopback LND.
libulnetcore_a_SOURCES += %D%/lolnd.c
