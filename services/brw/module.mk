libservices_a_SOURCES += %D%/brw.c
libservices_a_SOURCES += %D%/memory.c %D%/memory.h
dist_noinst_DATA += %D%/brw.proto
protos_made += %D%/brw.pb-c.h %D%/brw.pb-c.c
nodist_libservices_a_SOURCES += %D%/brw.pb-c.c
