# What goes with a call beside its body.
libulrpccore_a_SOURCES += %D%/annex.c %D%/annex.h
libulrpccore_a_SOURCES += %D%/context.c %D%/context.h
libulrpccore_a_SOURCES += %D%/intercept.c %D%/intercept.h
libulrpccore_a_SOURCES += %D%/scope.c %D%/scope.h
libulrpccore_a_SOURCES += %D%/status.c
