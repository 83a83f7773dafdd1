# What nodes tell each other about themselves.
libulnetcore_la_SOURCES += %D%/ping.c %D%/ping.h
