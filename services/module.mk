# Services that the tools know by name, and how to call them: on the installed
# headers only.
noinst_LIBRARIES += libservices.a
libservices_a_SOURCES = %D%/services.c %D%/services.h
libservices_a_SOURCES += %D%/common/pattern.c %D%/common/pattern.h
nodist_libservices_a_SOURCES =
