# Faults that a node is told to make.
libulnetcore_la_SOURCES += %D%/inject.c %D%/inject.h
libulnetcore_la_SOURCES += %D%/rule.c %D%/rule.h
