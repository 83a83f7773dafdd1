# Delivery to oneself.
libulnetcore_a_SOURCES += %D%/lolnd.c
