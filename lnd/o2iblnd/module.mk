# The LND over RDMA. What is on the wire needs no verbs, and is always built.
libulnetcore_la_SOURCES += %D%/wire.c %D%/wire.h
