# Faults that a node is told to make.
libulnetcore_a_SOURCES += %D%/inject.c %D%/inject.h
libulnetcore_a_SOURCES += %D%/rule.c %D%/rule.h
