# The client: connections to servers, and calls.
libulrpccore_a_SOURCES += %D%/attempt.c %D%/attempt.h
libulrpccore_a_SOURCES += %D%/bulks.c %D%/bulks.h
libulrpccore_a_SOURCES += %D%/call.c %D%/call.h
libulrpccore_a_SOURCES += %D%/client.c %D%/client.h
libulrpccore_a_SOURCES += %D%/fetch.c %D%/fetch.h
libulrpccore_a_SOURCES += %D%/import.c %D%/import.h
libulrpccore_a_SOURCES += %D%/import_control.c %D%/import_control.h
libulrpccore_a_SOURCES += %D%/import_priv.h
libulrpccore_a_SOURCES += %D%/imports.c %D%/imports.h
libulrpccore_a_SOURCES += %D%/batch.c %D%/batch.h
libulrpccore_a_SOURCES += %D%/reply_buf.c
libulrpccore_a_SOURCES += %D%/results.c
libulrpccore_a_SOURCES += %D%/retry.c %D%/retry.h
libulrpccore_a_SOURCES += %D%/shake.c %D%/shake.h
libulrpccore_a_SOURCES += %D%/slots.c %D%/slots.h
libulrpccore_a_SOURCES += %D%/timeouts.c %D%/timeouts.h
libulrpccore_a_SOURCES += %D%/trust.c %D%/trust.h
