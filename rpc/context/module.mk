# What goes with a call beside its body.
libulrpccore_a_SOURCES += %D%/status.c
