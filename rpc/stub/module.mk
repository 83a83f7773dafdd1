# Protobuf messages as bodies of calls and replies.
libulrpccore_a_SOURCES += %D%/message.c %D%/message.h
libulrpccore_a_SOURCES += %D%/serve.c %D%/serve.h
libulrpccore_a_SOURCES += %D%/serve_streams.c
libulrpccore_a_SOURCES += %D%/streaming.c %D%/streaming.h
libulrpccore_a_SOURCES += %D%/details.c
libulrpccore_a_SOURCES += %D%/stub.c %D%/stub.h
libulrpccore_a_SOURCES += %D%/about.c
libulrpccore_a_SOURCES += %D%/schema.c %D%/schema.h
