# What programs share: each is linked with what it uses of it.
noinst_LIBRARIES += libtools.a
if SHARED
libtools_a_CPPFLAGS = $(AM_CPPFLAGS) -DULNET_SHARED
else
libtools_a_CPPFLAGS = $(AM_CPPFLAGS)
endif
libtools_a_SOURCES = %D%/exporter.c %D%/exporter.h
libtools_a_SOURCES += %D%/etcd.c %D%/etcd.h
libtools_a_SOURCES += %D%/http_clients.c %D%/http_clients.h
libtools_a_SOURCES += %D%/keys.c %D%/keys.h
libtools_a_SOURCES += %D%/names.c %D%/names.h
libtools_a_SOURCES += %D%/node.c %D%/node.h
libtools_a_SOURCES += %D%/option.c %D%/option.h
libtools_a_SOURCES += %D%/program.c %D%/program.h
libtools_a_SOURCES += %D%/reload.c %D%/reload.h
libtools_a_SOURCES += %D%/spans.c %D%/spans.h
libtools_a_SOURCES += %D%/rules.c %D%/rules.h
libtools_a_SOURCES += %D%/serve.c %D%/serve.h
libtools_a_SOURCES += %D%/request.c %D%/request.h
libtools_a_SOURCES += %D%/target.c %D%/target.h
