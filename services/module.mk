# Services that the tools know by name, and how to call them. They include only
# installed headers of the libraries.
noinst_LIBRARIES += libservices.a
libservices_a_SOURCES = %D%/services.c %D%/services.h
libservices_a_SOURCES += %D%/common/pattern.c %D%/common/pattern.h
nodist_libservices_a_SOURCES =
