# Services, and their requests: what puts its rooms together.
libulrpccore_a_SOURCES += %D%/services.c
libulrpccore_a_SOURCES += %D%/tombstone.c %D%/tombstone.h
