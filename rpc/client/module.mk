# Connections to services, and calls.
libulrpccore_la_SOURCES += %D%/attempt.c %D%/attempt.h
libulrpccore_la_SOURCES += %D%/call.c %D%/call.h
libulrpccore_la_SOURCES += %D%/cancel.c %D%/cancel.h
libulrpccore_la_SOURCES += %D%/client.c %D%/client.h
libulrpccore_la_SOURCES += %D%/extend.c %D%/extend.h
libulrpccore_la_SOURCES += %D%/fetch.c %D%/fetch.h
libulrpccore_la_SOURCES += %D%/import.c %D%/import.h
libulrpccore_la_SOURCES += %D%/imports.c %D%/imports.h
libulrpccore_la_SOURCES += %D%/parcel.c %D%/parcel.h
libulrpccore_la_SOURCES += %D%/reply_buf.c %D%/reply_buf.h
libulrpccore_la_SOURCES += %D%/retry.c %D%/retry.h
libulrpccore_la_SOURCES += %D%/set.c
libulrpccore_la_SOURCES += %D%/severed.c %D%/severed.h
libulrpccore_la_SOURCES += %D%/slots.c %D%/slots.h
libulrpccore_la_SOURCES += %D%/sync.c
libulrpccore_la_SOURCES += %D%/timeout.c %D%/timeout.h
libulrpccore_la_SOURCES += %D%/window.h
