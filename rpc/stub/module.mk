# Protobuf messages as bodies of calls and replies.
libulrpccore_la_SOURCES += %D%/arena.c %D%/arena.h
libulrpccore_la_SOURCES += %D%/message.c %D%/message.h
libulrpccore_la_SOURCES += %D%/serve.c
libulrpccore_la_SOURCES += %D%/stub.c
libulrpccore_la_SOURCES += %D%/stub_method.c %D%/stub_method.h
