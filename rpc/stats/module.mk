# What is counted and timed.
libulrpccore_a_SOURCES += %D%/control_weak.h
libulrpccore_a_SOURCES += %D%/counters.c
libulrpccore_a_SOURCES += %D%/hist.c %D%/hist.h
libulrpccore_a_SOURCES += %D%/metrics.c %D%/metrics.h
libulrpccore_a_SOURCES += %D%/stat.c %D%/stat.h %D%/stat.def
libulrpccore_a_SOURCES += %D%/stat_run.c %D%/stat_run.h
libulrpccore_a_SOURCES += %D%/stats.c %D%/stats.h
libulrpccore_a_SOURCES += %D%/stats_print.c
libulrpccore_a_SOURCES += %D%/stats_sum.c
