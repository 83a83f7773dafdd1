# What programs share: each is linked with what it uses of it.
noinst_LIBRARIES += libtools.a
libtools_a_SOURCES = %D%/exporter.c %D%/exporter.h
libtools_a_SOURCES += %D%/file.c %D%/file.h
libtools_a_SOURCES += %D%/lst_options.c %D%/lst_options.h
libtools_a_SOURCES += %D%/metrics.c %D%/metrics.h
libtools_a_SOURCES += %D%/nearest.c %D%/nearest.h
libtools_a_SOURCES += %D%/node.c %D%/node.h
libtools_a_SOURCES += %D%/option.c %D%/option.h
libtools_a_SOURCES += %D%/program.c %D%/program.h
libtools_a_SOURCES += %D%/request.c %D%/request.h
