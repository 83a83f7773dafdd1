# Streams, on the public functions of calls and services.
libulrpccore_a_SOURCES += %D%/called.c %D%/called.h
libulrpccore_a_SOURCES += %D%/caller.c
libulrpccore_a_SOURCES += %D%/channel.c %D%/channel.h
libulrpccore_a_SOURCES += %D%/frame.h
libulrpccore_a_SOURCES += %D%/serve.c
libulrpccore_a_SOURCES += %D%/serving.c %D%/serving.h
libulrpccore_a_SOURCES += %D%/set.c %D%/set.h
libulrpccore_a_SOURCES += %D%/stream.c %D%/stream.h
libulrpccore_a_SOURCES += %D%/streams.c %D%/streams.h
libulrpccore_a_SOURCES += %D%/under.c %D%/under.h
