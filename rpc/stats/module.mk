# What is counted and timed.
libulrpccore_la_SOURCES += %D%/counters.c
libulrpccore_la_SOURCES += %D%/hist.c %D%/hist.h
libulrpccore_la_SOURCES += %D%/metrics.c %D%/metrics.h
libulrpccore_la_SOURCES += %D%/stat.c %D%/stat.h %D%/stat.def
libulrpccore_la_SOURCES += %D%/stat_run.c %D%/stat_run.h
libulrpccore_la_SOURCES += %D%/stats.c %D%/stats.h
libulrpccore_la_SOURCES += %D%/stats_print.c
libulrpccore_la_SOURCES += %D%/stats_sum.c
