# Clients as their server knows them.
libulrpccore_a_SOURCES += %D%/suspect.c
libulrpccore_a_SOURCES += %D%/client_ids.c %D%/client_ids.h
libulrpccore_a_SOURCES += %D%/export.c %D%/export.h
libulrpccore_a_SOURCES += %D%/export_control.c %D%/export_control.h
libulrpccore_a_SOURCES += %D%/export_priv.h
libulrpccore_a_SOURCES += %D%/rails.c %D%/rails.h
libulrpccore_a_SOURCES += %D%/session.c %D%/session.h
libulrpccore_a_SOURCES += %D%/record.c %D%/record.h
libulrpccore_a_SOURCES += %D%/kept.c %D%/kept.h
libulrpccore_a_SOURCES += %D%/known.c %D%/known.h
