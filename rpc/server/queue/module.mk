# The order in which requests are served, and the workers that run them.
libulrpccore_a_SOURCES += %D%/exec.c %D%/exec.h
libulrpccore_a_SOURCES += %D%/gate.c %D%/gate.h
libulrpccore_a_SOURCES += %D%/sched.c %D%/sched.h
libulrpccore_a_SOURCES += %D%/sched_policy.c
libulrpccore_a_SOURCES += %D%/share.c %D%/share.h
