# Delivery to oneself.
libulnetcore_la_SOURCES += %D%/lolnd.c
