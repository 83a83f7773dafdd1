# Services that the tools know by name, and how to call them: on the installed
# headers only.
noinst_LTLIBRARIES += libservices.la
libservices_la_CFLAGS = $(AM_CFLAGS) $(PROTOBUF_C_CFLAGS)
libservices_la_LIBADD = $(PROTOBUF_C_LIBS)
libservices_la_SOURCES = %D%/services.c %D%/services.h
libservices_la_SOURCES += %D%/pattern.c %D%/pattern.h
nodist_libservices_la_SOURCES =
