# Statistics: what is counted and timed.
libulrpccore_a_SOURCES += %D%/hist.c %D%/hist.h
libulrpccore_a_SOURCES += %D%/metrics.c
libulrpccore_a_SOURCES += %D%/slow.c %D%/slow.h %D%/slow_command.c
libulrpccore_a_SOURCES += %D%/spans.c %D%/spans.h
libulrpccore_a_SOURCES += %D%/stat.c %D%/stat.h %D%/stat.def
libulrpccore_a_SOURCES += %D%/stats.c %D%/stats.h
libulrpccore_a_SOURCES += %D%/rules_command.c %D%/set_command.c
libulrpccore_a_SOURCES += %D%/stats_print.c
libulrpccore_a_SOURCES += %D%/top_command.c
libulrpccore_a_SOURCES += %D%/yaml.c %D%/yaml.h
